package executor

import (
	"time"

	"github.com/tierflow/tierflow/executor/kernel"
)

// handing copies pieces to where other ranks read them. Lines of that memory may be in
// another processor's cache. Between processors that share a cache they come from there
// soon. Between others it takes several times as long as writing past the caches. How long
// a plain copy takes shows which it is. It changes when a rank or a virtual processor moves,
// so a plain copy is tried again now and then.
type handing struct {
	left int  // pieces until a plain copy is timed again; 0 <= left <= untimed
	past bool // until then they go past the caches
	slow int  // timed copies in a row that took long; 0 <= slow < slowInRow
}

const (
	leastHanded = 32 << 10 // shorter pieces, in bytes, are copied plainly: they are sooner with their reader
	slowInRow   = 2        // one alone may have been interrupted
	untimed     = 30
	// A plain copy takes long from 1 ns for so many bytes on. Two processors with a cache
	// in common copied 9 bytes in 1 ns, two others 2.3 (64 KiB that the other had read, 2026-11-22).
	slowBytes = 5
)

// handFunc is the type of [handing.copy].
type handFunc func(dst, src, _ []byte)

// copy is a copy as a reduction of one operand.
func (h *handing) copy(dst, src, _ []byte) {
	switch {
	case len(src) < leastHanded:
		copy(dst, src)
	case h.left > 0:
		if h.left--; !h.past || !kernel.CopyPast(dst, src) {
			copy(dst, src)
		}
	default:
		began := time.Now()
		copy(dst, src)
		h.note(len(src), time.Since(began))
	}
}

// note takes in how long a plain copy of so many bytes took.
func (h *handing) note(bytes int, took time.Duration) {
	switch {
	case took*slowBytes < time.Duration(bytes):
		h.left, h.past, h.slow = untimed, false, 0
	case h.slow < slowInRow-1:
		h.slow++ // and the next one is timed
	default:
		h.left, h.past = untimed, true
	}
}
