// Package tcp carries messages between two ranks over a connection.
//
// A [Link] writes frames, see package wire: at each frame boundary first all small
// messages, then the next part of the first large payload. It reads and writes its own
// descriptors without blocking and without the runtime's poller. It dials nobody: package
// proc gives it connections. A link is guarded by the lock of its engine.
package tcp
