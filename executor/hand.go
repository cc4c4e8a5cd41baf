package executor

import (
	"time"

	"github.com/tierflow/tierflow/executor/kernel"
)

// pieceCopier copies pieces into memory read by other ranks. Lines of this memory may be in another
// processor's cache. Between processors with a common cache they come from there soon. Between
// others it takes several times as long as writing past the caches. The time of a plain copy shows
// which case it is. It changes when a rank or a virtual processor moves, so a plain copy is tried
// again now and then.
type pieceCopier struct {
	untilTimed int  // pieces until a plain copy is timed again; 0 <= untilTimed <= timingGap
	bypass     bool // until then they go past the caches
	slowCopies int  // long timed copies in a row; 0 <= slowCopies < slowInRow
}

const (
	leastHanded = 32 << 10 // shorter pieces, in bytes, are copied plainly: they are sooner with their reader
	slowInRow   = 2        // one alone may have been interrupted
	timingGap   = 30
	// A plain copy is slow from 1 ns for so many bytes on. Two processors with a cache in common
	// copied 9 bytes in 1 ns, two others 2.3 (64 KiB read by the other before, 2026-11-22).
	slowBytes = 5
)

// copy is a copy as a reduction of one operand.
func (h *pieceCopier) copy(dst, src, _ []byte) {
	switch {
	case len(src) < leastHanded:
		copy(dst, src)
	case h.untilTimed > 0:
		if h.untilTimed--; !h.bypass || !kernel.CopyPast(dst, src) {
			copy(dst, src)
		}
	default:
		began := time.Now()
		copy(dst, src)
		h.note(len(src), time.Since(began))
	}
}

// note takes in the time of a plain copy.
func (h *pieceCopier) note(bytes int, took time.Duration) {
	switch {
	case took*slowBytes < time.Duration(bytes):
		h.untilTimed, h.bypass, h.slowCopies = timingGap, false, 0
	case h.slowCopies < slowInRow-1:
		h.slowCopies++ // and the next one is timed
	default:
		h.untilTimed, h.bypass = timingGap, true
	}
}
