// Package wire is the language between a link and the engine: the messages, the
// interfaces on both sides, and the common parts of several links.
//
// It moves no bytes and knows no world: links stand on it from below, the engine (package
// executor) from above, and neither knows the other. It holds no lock: callers of a
// link hold the lock of its engine.
//
//	engine  -> Link: Post, Put        a message leaves
//	link    -> Sink: Deliver, Place, Sent  a message arrives, its bytes have left
//
// A small payload goes with its message. A large one goes against credit: the receiver's
// Credit has the place of its bytes, the link puts them there, and the Data behind them says
// that they are complete.
package wire
