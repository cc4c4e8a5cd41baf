// Package wire is what a link and the engine say to each other: the messages, the
// interfaces on both sides, and what several links share.
//
// It moves no bytes and knows no world: links stand on it from below, the engine (package
// executor) from above, and neither knows the other. It holds no lock. Whoever calls a
// link holds that of the link's engine.
//
//	engine  -> Transport: Post, Put        a message leaves
//	link    -> Sink: Deliver, Place, Sent  a message arrives, its bytes have left
//
// A small payload goes with its message. A large one goes against credit: the receiver's
// Credit says where its bytes go, the link puts them there, and the Data behind them says
// that they are complete.
package wire
