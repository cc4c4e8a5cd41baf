// Package shm carries messages between two ranks of a node through memory of both.
//
// A rank's [Segment] is its shared memory: it alone writes there, the others read.
// A [Link] is one rank's end towards one peer: small messages go by a ring, large payloads
// by a stream of parts, and messages without room wait in the link. A ring is a [Writer] and
// a [Reader]; goroutine ranks use rings without segments. Each shared word has
// one writer, and there are no locks.
//
// It maps no memory, opens no descriptor and wakes nobody by itself: package proc does. A
// link is guarded by the lock of its engine.
package shm
