package tasks_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

func TestRegionNames(t *testing.T) {
	seen := map[string]bool{}
	for r := tasks.Region(1); !strings.HasPrefix(r.String(), "Region("); r++ {
		if r.String() == "" || seen[r.String()] {
			t.Errorf("region %d is called %q, like another or nothing", r, r)
		}
		seen[r.String()] = true
	}
	if !seen["peer"] || tasks.Region(0).String() != "Region(0)" {
		t.Errorf("walked %v; the zero value is called %v", seen, tasks.Region(0))
	}
}

func TestSpan(t *testing.T) {
	s := tasks.Span{Region: tasks.Recv, Off: 100, Len: 50}
	if got, want := s.Cut(10, 20).String(), "recv[110:130]"; got != want {
		t.Errorf("cut: got %s, want %s", got, want)
	}
	if got, want := s.String(), "recv[100:150]"; got != want {
		t.Errorf("Cut changed its receiver: %s, want %s", got, want)
	}
	peer := tasks.Span{Region: tasks.Peer, Ref: 7, Off: 1, Len: 2}
	if got, want := peer.Cut(3, 4).String(), "peer(7)[4:8]"; got != want {
		t.Errorf("a peer's memory: got %s, want %s", got, want)
	}
}
