package submodules_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

func TestLabels(t *testing.T) {
	progs := compile(t, allreduce(6<<10), "2x2", "shape=han,fs=4KiB,w=1,i=adapt/chain,s=sm")
	var got []string
	for _, p := range []*submodules.Program{progs[0], progs[1]} {
		for i := range p.Steps() {
			if s := &p.Steps()[i]; p.Task(s).Segment == 1 {
				got = append(got, p.Label(s))
			}
		}
	}
	want := []string{
		"sr#1 await r1>r0", "sr#1 reduce r0 2KiB", "sr#1 notify r0>r1",
		"ir#1 recv r2>r0 2KiB", "ir#1 reduce r0 2KiB", "ib#1 send r0>r2 2KiB",
		"sb#1 join r0", "sb#1 copy r0 2KiB", "sb#1 notify r0>r1", "sb#1 await r1>r0",
		"sr#1 copy r1 2KiB", "sr#1 notify r1>r0", "sr#1 await r0>r1",
		"sb#1 await r0>r1", "sb#1 copy r1 2KiB", "sb#1 notify r1>r0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// TestEdges: the n-th message of a rank to another is the n-th that this one
// hears from it, and both steps know that number.
func TestEdges(t *testing.T) {
	progs := compile(t, allreduce(1000), "a:3,b:1,c:2", "shape=han,fs=100,w=2,i=adapt/binomial/40,s=sm//30")
	messages := 0
	for _, p := range progs {
		for i, peer := range p.Peers {
			if p.PeerIndex(peer.Rank) != int32(i) {
				t.Fatalf("rank %d: peer %d is rank %d, found at %d", p.Rank, i, peer.Rank, p.PeerIndex(peer.Rank))
			}
			other := progs[peer.Rank]
			in := other.Peers[other.PeerIndex(p.Rank)].In
			if len(in) != len(peer.Out) {
				t.Fatalf("rank %d says %d messages to rank %d, which hears %d", p.Rank, len(peer.Out), peer.Rank, len(in))
			}
			for n, id := range peer.Out {
				s, r := p.Step(id), other.Step(in[n])
				if int(s.Edge) != n || int(r.Edge) != n || s.Peer != int32(i) || !s.Kind.Outgoing() || !r.Kind.Incoming() {
					t.Fatalf("message %d: %s has edge %d, %s has edge %d", n, p.Label(s), s.Edge, other.Label(r), r.Edge)
				}
				if a, b := p.Task(s).String(), other.Task(r).String(); a != b {
					t.Fatalf("message %d: a step of %s meets a step of %s", n, a, b)
				}
				messages++
			}
		}
	}
	if messages == 0 {
		t.Error("no messages")
	}
}

func TestPeerIndexOfStrangers(t *testing.T) {
	p := compile(t, bcast(1, 0), "3", "shape=flat,fs=all,w=1,s=adapt/chain")[0]
	for r, want := range map[int]int32{-1: -1, 0: -1, 1: 0, 2: -1, 3: -1} {
		if got := p.PeerIndex(levels.Rank(r)); got != want {
			t.Errorf("rank %d is peer %d, want %d", r, got, want)
		}
	}
}

// TestJoin: eight ends before one beginning are one step with eight edges, so
// that a task with many beginnings doesn't multiply them.
func TestJoin(t *testing.T) {
	p := compile(t, bcast(128, 0), "5", "shape=flat,fs=64,w=1,s=sm//32")[0]
	joins := 0
	for id := range dag.ID(p.Len()) {
		s := p.Step(id)
		if s.Kind != submodules.JoinStep {
			continue
		}
		joins++
		// In each inner segment the leader tells four members, and hears from them.
		if len(p.Pred(id)) != 2*(4+4) || len(p.Succ(id)) != 2 || s.Peer != -1 {
			t.Errorf("%s joins %d steps before %d; want 16 before 2", p.Label(s), len(p.Pred(id)), len(p.Succ(id)))
		}
	}
	if joins != 1 {
		t.Errorf("%d joins, want one before the second segment:\n%v", joins, p)
	}
}

// TestWindows: memory of two tasks overlaps only if they are of one kind and a
// multiple of the window apart; then it is the same place.
func TestWindows(t *testing.T) {
	const window = 3
	progs := compile(t, allreduce(700), "2x3", "shape=han,fs=100,w=3,i=adapt/binomial,s=sm")
	overlaps := 0
	for _, p := range progs {
		pieces := ownMemory(p)
		for i, a := range pieces {
			for _, b := range pieces[:i] {
				if a.task == b.task || a.Region != b.Region || a.Off >= b.Off+b.Len || b.Off >= a.Off+a.Len {
					continue
				}
				overlaps++
				x, y := p.Tasks.Node(a.task), p.Tasks.Node(b.task)
				if x.Kind != y.Kind || (x.Segment-y.Segment)%window != 0 || a.Off != b.Off {
					t.Fatalf("rank %d: %v of %v overlaps %v of %v", p.Rank, a.Span, x, b.Span, y)
				}
			}
		}
	}
	if overlaps == 0 {
		t.Error("seven segments through a window of three never met in one slot")
	}
}

// TestReadyAtStart: the node's copies start when the data is there, whatever
// else the rank has to do for the task that brings it.
func TestReadyAtStart(t *testing.T) {
	progs := compile(t, bcast(192, 0), "4x2", "shape=han,fs=64,w=1,i=adapt/binomial,s=sm")
	// The root's first sb waits for nothing, later ones for the slot's last use only.
	for _, n := range before(progs[0], "sb#0 copy r0 64B") {
		t.Errorf("on the root sb#0's copy waits for %s", n)
	}
	for _, n := range before(progs[0], "sb#2 copy r0 64B") {
		if n[:2] == "ib" {
			t.Errorf("on the root sb#2's copy waits for %s", n)
		}
	}
	// Another leader has to receive first; its own sends may end later.
	waits := before(progs[4], "sb#0 copy r4 64B")
	if want := []string{"ib#0 recv r0>r4 64B"}; !slices.Equal(waits, want) {
		t.Errorf("on a leader sb#0's copy waits for %v, want %v", waits, want)
	}
}

// before lists the labels of all steps, other than joins, that come before one.
func before(p *submodules.Program, label string) []string {
	at := dag.ID(slices.IndexFunc(p.Steps(), func(s submodules.Step) bool { return p.Label(&s) == label }))
	queries := make([][2]dag.ID, p.Len())
	for i := range queries {
		queries[i] = [2]dag.ID{dag.ID(i), at}
	}
	var names []string
	for i, yes := range p.Reaches(queries) {
		if s := p.Step(dag.ID(i)); yes && dag.ID(i) != at && s.Kind != submodules.JoinStep {
			names = append(names, p.Label(s))
		}
	}
	return names
}

func TestDescribe(t *testing.T) {
	p := compile(t, bcast(64, 0), "2", "shape=flat,fs=all,w=1,s=adapt/chain")[1]
	task, label, kind, level, bytes := p.Describe(0)
	if task != "sb#0" || label != "sb#0 recv r0>r1 64B" || kind != "recv" || level != 's' || bytes != 64 {
		t.Errorf("got %q, %q, %q, %c, %d", task, label, kind, level, bytes)
	}
}
