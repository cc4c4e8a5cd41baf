package tasks_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

func TestCollectiveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range tasks.Collectives() {
		name := c.String()
		if name == "" || seen[name] || strings.HasPrefix(name, "Collective(") {
			t.Errorf("collective %d is called %q, like another or nothing", c, name)
		}
		seen[name] = true
		got, err := tasks.ParseCollective(name)
		if requestable := slices.Contains(tasks.Requestable(), c); requestable != (err == nil) || err == nil && got != c {
			t.Errorf("ParseCollective(%q) = %v, %v; requestable: %v", name, got, err, requestable)
		}
	}
	if next := tasks.Collective(len(seen) + 1).String(); !strings.HasPrefix(next, "Collective(") {
		t.Errorf("Collectives doesn't list %s", next)
	}
	if got := tasks.Collective(0).String(); got != "Collective(0)" {
		t.Errorf("the zero value is called %q", got)
	}
}

func TestParseCollectiveError(t *testing.T) {
	_, err := tasks.ParseCollective("brodcast")
	if want := `unknown collective "brodcast"; known are bcast, reduce, allreduce, allgather, gather, scatter, reducescatter, alltoall, barrier, scan, exscan`; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestKindNames(t *testing.T) {
	for _, tc := range []struct {
		kind tasks.Kind
		want string
	}{
		{tasks.Kind{'s', tasks.Reduce}, "sr"},
		{tasks.Kind{'i', tasks.Reduce}, "ir"},
		{tasks.Kind{'i', tasks.Bcast}, "ib"},
		{tasks.Kind{'s', tasks.Bcast}, "sb"},
		{tasks.Kind{'w', tasks.Allreduce}, "war"},
		{tasks.Kind{'i', 0}, "i?"},
		{tasks.Kind{'i', 200}, "i?"},
	} {
		if got := tc.kind.String(); got != tc.want {
			t.Errorf("%#v is called %q, want %q", tc.kind, got, tc.want)
		}
	}
}
