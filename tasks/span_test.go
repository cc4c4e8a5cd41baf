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

// TestShard: shards follow one another and fill the span, whole elements each, none
// larger than one before; beyond the last there are empty ones at the end.
func TestShard(t *testing.T) {
	const elem = 4
	for _, n := range []int{1, 2, 3, 7, 16} {
		for _, elems := range []int64{0, 1, 2, 6, 7, 8, 100} {
			s := tasks.Span{Region: tasks.Send, Off: 12, Len: elems * elem}
			end, before := s.Off, s.Len
			for i := range n + 2 {
				shard := s.Shard(i, n, elem)
				if shard.Region != s.Region || shard.Off != end || shard.Len%elem != 0 || shard.Len > before || i >= n && shard.Len > 0 {
					t.Errorf("%d elements, shard %d of %d: %v, want it at %d", elems, i, n, shard, end)
				}
				end, before = end+shard.Len, shard.Len
			}
			if first, last := s.Shard(0, n, elem).Len, s.Shard(n-1, n, elem).Len; first-last > elem || end != s.Off+s.Len {
				t.Errorf("%d elements in %d: from %d to %d bytes, the last ends at %d", elems, n, last, first, end)
			}
		}
	}
}

func TestTotalLen(t *testing.T) {
	for _, tc := range []struct {
		spans []tasks.Span
		want  int64
	}{{nil, 0}, {[]tasks.Span{{Off: 7}}, 0}, {[]tasks.Span{{Len: 3}, {}, {Region: tasks.Slot, Len: 1 << 40}}, 1<<40 + 3}} {
		if got := tasks.TotalLen(tc.spans); got != tc.want {
			t.Errorf("%v have %d bytes, want %d", tc.spans, got, tc.want)
		}
	}
}
