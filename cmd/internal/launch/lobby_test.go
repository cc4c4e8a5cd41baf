package launch

import (
	"testing"
	"time"
)

// Processes that wait long are reported with those that should let them in.
func TestWaitingText(t *testing.T) {
	const want = "waiting to be let in, for up to 60 s: ranks 0,2-4; that takes a Turn or Grow of all of ranks 1,5, and one that hangs or is stopped holds it up"
	if got := waitingText([]int{4, 2, 3, 0}, []int{5, 1}, time.Minute); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
