package join

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// The leaders of 35 nodes: the first has 32 below it, and the second the rest.
func TestParents(t *testing.T) {
	place := make([]int, 37)
	for r := range place {
		place[r] = r
	}
	place[35], place[36] = 0, 34 // below their nodes' leaders
	want := slices.Concat([]levels.Rank{-1}, make([]levels.Rank, 32), []levels.Rank{1, 1, 0, 34})
	if got := newTree(topologyOfNodes(t, place)).parent; !slices.Equal(got, want) {
		t.Errorf("parents %v, want %v", got, want)
	}
}

// TestParentsWithoutTheLost: whoever is lost, those who are left form one tree, and only
// ranks whose parent is gone get another one.
func TestParentsWithoutTheLost(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		size := 1 + rnd.IntN(150)
		nodes := 1 + rnd.IntN(size)
		place := make([]int, size)
		for r := range place {
			place[r] = rnd.IntN(nodes)
		}
		top := topologyOfNodes(t, place)
		tree, gone := newTree(top), make([]error, size)
		before := slices.Clone(tree.parent)
		for _, lost := range rnd.Perm(size)[:rnd.IntN(size)] {
			gone[lost] = ErrLost
			roots := 0
			for r := range levels.Rank(size) {
				if gone[r] != nil {
					continue
				}
				up := tree.parentWithout(gone, r)
				if old := before[r]; up != old && int(old) != lost && old != -1 {
					t.Fatalf("seed %d: nodes %v: rank %d was below %d, which is here, now below %d", seed, place, r, old, up)
				}
				before[r] = up
				steps := 0
				for at := r; at >= 0; at = tree.parentWithout(gone, at) {
					if steps++; steps > size || gone[at] != nil {
						t.Fatalf("seed %d: nodes %v, lost %v: rank %d has no way to a root", seed, place, gone, r)
					}
				}
				if up < 0 {
					roots++
				}
			}
			if roots != 1 {
				t.Fatalf("seed %d: nodes %v: %d roots", seed, place, roots)
			}
		}
	}
}

// topologyOfNodes returns that of ranks on these nodes.
func topologyOfNodes(t *testing.T, node []int) *levels.Topology {
	t.Helper()
	peers := make([]*Peer, len(node))
	for r, n := range node {
		peers[r] = &Peer{Rank: levels.Rank(r), Size: len(node), Node: fmt.Sprint("node", n)}
	}
	top, err := topologyOf(peers)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// TestSecondLoss kills ranks beyond the cut that another death has made. Those on the other side
// learn of it.
func TestSecondLoss(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		here    []levels.Rank
		victims []levels.Rank
		apart   bool // the next one dies once the others know of the one before
	}{
		{"a leader, then the next one of its node", []levels.Rank{0, 1}, []levels.Rank{2, 3}, true},
		{"a node at once", []levels.Rank{0, 1}, []levels.Rank{2, 3}, false},
		{"the root, then its node, then another leader", []levels.Rank{3, 5}, []levels.Rank{0, 1, 4}, true},
		{"two nodes at once", []levels.Rank{4, 5}, []levels.Rank{0, 1, 2, 3}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cs := configs(t, 6)
			var local []Config
			started := map[levels.Rank]*exec.Cmd{}
			for r, cfg := range cs {
				cfg.Node = fmt.Sprint(r / 2)
				if slices.Contains(c.here, levels.Rank(r)) {
					local = append(local, cfg)
				} else {
					started[levels.Rank(r)] = startRank(t, cfg)
				}
			}
			jobs := enterAll(t, local)
			defer closeSoon(jobs)
			var boxes []*mailbox
			for _, j := range jobs {
				boxes = append(boxes, watch(j))
			}
			for i, victim := range c.victims {
				if err := started[victim].Process.Kill(); err != nil {
					t.Fatal(err)
				}
				if !c.apart && i+1 < len(c.victims) {
					continue
				}
				for k, m := range boxes {
					if !m.eventually(2*time.Minute, func() bool { return len(m.lost) > i }) {
						t.Fatalf("rank %d learned only of %v", jobs[k].Rank, m.lost)
					}
				}
			}
			for k, m := range boxes {
				m.mu.Lock()
				for _, victim := range c.victims {
					if !errors.Is(m.lost[victim], ErrLost) {
						t.Errorf("rank %d: of rank %d: %v", jobs[k].Rank, victim, m.lost[victim])
					}
				}
				m.mu.Unlock()
			}
			for _, j := range jobs {
				if _, err := j.Dial(t.Context(), c.victims[0], 1); !errors.Is(err, ErrLost) {
					t.Errorf("rank %d: dial: %v", j.Rank, err)
				}
			}
		})
	}
}

// TestGoodbyeBeyondTheCut: a rank that leaves after a loss is no lost one to those whom its edge beside the
// tree leads to.
func TestGoodbyeBeyondTheCut(t *testing.T) {
	jobs, kill := mixedJob(t, 4, []levels.Rank{0, 1, 3}, 2)
	boxes := []*mailbox{watch(jobs[0]), watch(jobs[1])}
	watch(jobs[2])
	kill()
	clocktest.Until(t, "rank 3 has found another rank above it", func() bool { return jobs[0].hasEdge(3) && jobs[2].hasEdge(0) })
	if err := jobs[2].Close(t.Context()); err != nil {
		t.Error(err)
	}
	for i, m := range boxes {
		clocktest.Until(t, fmt.Sprintf("rank %d has heard the goodbye", i), func() bool { return errors.Is(jobs[i].goneError(3), ErrLeft) })
		lost := func() int {
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.lost)
		}
		clocktest.Until(t, fmt.Sprintf("rank %d has heard of the loss", i), func() bool { return lost() > 0 }) // the news goes on to others first
		if n := lost(); n != 1 {
			t.Errorf("rank %d learned of %d lost ranks", i, n)
		}
	}
}

// TestRefusalIsNoLossAtOnce: a rank that takes no connections any more may have left, and its goodbye be on its way.
func TestRefusalIsNoLossAtOnce(t *testing.T) {
	jobs := enterAll(t, configs(t, 2))
	defer closeSoon(jobs)
	watch(jobs[0])
	watch(jobs[1])
	jobs[1].door.close()
	for _, missed := range []time.Duration{-time.Hour, comeTime} { // the first: since just now, on however slow a machine
		jobs[0].look(1, map[levels.Rank]time.Time{1: time.Now().Add(-missed)})
		if gone := jobs[0].goneError(1); errors.Is(gone, ErrLost) != (missed > 0) {
			t.Errorf("missed for %v: %v", missed, gone)
		}
	}
}
