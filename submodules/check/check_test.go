package check_test

import (
	"errors"
	"testing"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/tasks"
)

// TestPasses: of a message too long for one graph the repeated pass and the rest
// are checked, each once.
func TestPasses(t *testing.T) {
	s := script{bcast: sendAll}
	r := longer(bcast, 2*tasks.MaxSegments+3)
	got, err := run(s, r, "2", tasks.MaxSegments)
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(tasks.MaxSegments + 3); int64(got.Messages) != want || got.Sent != want*4 {
		t.Errorf("got %+v, want %d messages", got, want)
	}
	// A defect in the rest alone, which is shorter than a segment.
	s.bcast = func(e *submodules.Emitter, c *submodules.Call) {
		if c.Dst.Len == 4 {
			sendAll(e, c)
		}
	}
	r.Count = 4*tasks.MaxSegments*2 + 3
	if _, err := run(s, r, "2", tasks.MaxSegments); err == nil {
		t.Error("a defect in the last pass is not detected")
	}
}

func TestTooLarge(t *testing.T) {
	s := script{bcast: sendAll}
	for limit, want := range map[int]error{0: nil, 10: nil, 9: check.ErrTooLarge} {
		_, err := runLimited(s, longer(bcast, 5), "2", 5, limit)
		if !errors.Is(err, want) {
			t.Errorf("ten steps with limit %d: got error %v, want %v", limit, err, want)
		}
	}
}
