package submodules_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/submodules"
)

// Schedules and hands have each their own name, and others say that they are none.
func TestScheduleNames(t *testing.T) {
	seen := map[string]bool{}
	for s := submodules.Schedule(0); s <= submodules.OneByOne; s++ {
		if name := s.String(); name == "" || strings.HasPrefix(name, "Schedule(") || seen[name] {
			t.Errorf("schedule %d is called %q, like another or nothing", uint8(s), name)
		}
		seen[s.String()] = true
	}
	for h := submodules.ByLink; h <= submodules.Read; h++ {
		if name := h.String(); name == "" || strings.HasPrefix(name, "Hand(") || seen[name] {
			t.Errorf("hand %d is called %q, like another or nothing", uint8(h), name)
		}
		seen[h.String()] = true
	}
	if got := (submodules.OneByOne + 1).String(); got != "Schedule(14)" {
		t.Errorf("got %s", got)
	}
	if got := (submodules.Read + 1).String(); got != "Hand(4)" {
		t.Errorf("got %s", got)
	}
}
