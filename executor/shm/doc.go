// Package shm carries messages between two ranks of a node through memory that both see.
//
// A rank's [Segment] is the memory that it shares: it alone writes there, the others read.
// A [Link] is one rank's end towards one peer: small messages go by a ring, large payloads
// by a stream of parts, and what finds no room waits in the link. A ring is a [Writer] and
// a [Reader]; ranks that are goroutines use rings without segments. Each shared word has
// one writer, and there are no locks.
//
// It maps no memory, opens no descriptor and wakes nobody by itself: package proc does. A
// link is guarded by the lock of its engine.
package shm
