package executor

import (
	"bytes"
	"testing"
	"time"
)

// Two slow copies in a row make pieces go past the caches, for a while; so does one slow one
// after that.
func TestHanding(t *testing.T) {
	const n = leastHanded
	fast, slow := time.Duration(n/slowBytes-1), time.Duration(n/slowBytes+1)
	h := &pieceCopier{}
	for i, step := range []struct {
		took time.Duration
		left int
		past bool
	}{
		{slow, 0, false},
		{fast, timingGap, false},
		{slow, 0, false},
		{slow, timingGap, true},
		{slow, timingGap, true},
		{fast, timingGap, false},
		{slow, 0, false},
		{slow, timingGap, true},
	} {
		h.untilTimed = 0
		if h.note(n, step.took); h.untilTimed != step.left || h.bypass != step.past {
			t.Errorf("step %d: for %d pieces past the caches %v, want %d %v", i, h.untilTimed, h.bypass, step.left, step.past)
		}
	}
}

// Whichever way a piece goes, it arrives, and nothing beside it changes.
func TestHandingCopies(t *testing.T) {
	for _, past := range []bool{false, true} {
		for _, n := range []int{0, 1, leastHanded - 1, leastHanded, leastHanded + 1, leastHanded + 77} {
			for _, off := range []int{0, 1, 31} {
				src, dst := make([]byte, n+2*off), make([]byte, n+2*off)
				for i := range src {
					src[i] = byte(i*7 + i>>8)
				}
				h := &pieceCopier{untilTimed: 1, bypass: past}
				h.copy(dst[off:][:n], src[off:][:n], nil)
				want := make([]byte, len(dst))
				copy(want[off:][:n], src[off:])
				if !bytes.Equal(dst, want) {
					t.Errorf("%d bytes at %d, past %v: they differ", n, off, past)
				}
			}
		}
	}
}
