package planner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// drawPeers returns a drawn list of peers of each rank; counts[a][b] elements go from a to b, -1: they
// are no peers.
func drawPeers(draw *rand.Rand, ranks, most int) [][]int {
	counts := make([][]int, ranks)
	for a := range counts {
		counts[a] = make([]int, ranks)
	}
	for a := range counts {
		for b := range a + 1 {
			counts[a][b], counts[b][a] = -1, -1
			if draw.IntN(2) == 0 {
				counts[a][b] = draw.IntN(most)
				counts[b][a] = draw.IntN(most)
			}
			if a == b {
				counts[a][a] = counts[b][a]
			}
		}
	}
	return counts
}

// blocksFor cuts what a rank has for its peers: of one array, or each by itself.
func blocksFor(counts []int, peers []int, together bool) [][]int32 {
	all := make([][]int32, len(peers))
	sum := 0
	for _, n := range counts {
		sum += max(0, n)
	}
	array, at := make([]int32, sum), 0
	for peer, n := range counts { // in the order of ranks
		for i, p := range peers {
			switch {
			case p != peer:
			case together:
				all[i] = array[at : at+n]
				at += n
			default:
				all[i] = make([]int32, n)
			}
		}
	}
	return all
}

// meetNeighbors exchanges on a graph, several times, and checks every element.
func meetNeighbors(ctx context.Context, c *planner.Comm, counts [][]int, seed uint64, now, together bool) error {
	me, gets := c.Rank(), make([]int, c.Size())
	var peers []int
	for other := range counts {
		if gets[other] = counts[other][me]; gets[other] >= 0 {
			peers = append(peers, other)
		}
	}
	draw := rand.New(rand.NewPCG(seed, uint64(me)))
	draw.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	send, recv := blocksFor(counts[me], peers, together), blocksFor(gets, peers, together)
	run := func() error { return planner.Neighbors(ctx, c, peers, send, recv) }
	if !now {
		col, err := planner.PrepareNeighbors(ctx, c, peers, send, recv)
		if err != nil {
			return err
		}
		run = func() error { return col.Run(ctx) }
	}
	value := func(from, to, i, round int) int32 { return int32(from*1_000_000 + to*10_000 + i%1000*8 + round) }
	for round := range 3 {
		for k, p := range peers {
			for i := range send[k] {
				send[k][i] = value(me, p, i, round)
			}
			clear(recv[k])
		}
		if err := run(); err != nil {
			return err
		}
		for k, p := range peers {
			for i, got := range recv[k] {
				if want := value(p, me, i, round); got != want {
					return fmt.Errorf("seed %d: rank %d, round %d: element %d from rank %d is %d, want %d", seed, me, round, i, p, got, want)
				}
			}
			for i, got := range send[k] {
				if got != value(me, p, i, round) {
					return fmt.Errorf("seed %d: rank %d: element %d for rank %d was written to", seed, me, i, p)
				}
			}
		}
	}
	return nil
}

// Random graphs of all kinds: ranks without peers, a rank as its own peer, empty blocks,
// large ones, blocks of one array and apart.
func TestNeighbors(t *testing.T) {
	onBothKinds(t, 3, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		for seed := range uint64(16) {
			draw := rand.New(rand.NewPCG(seed, 7)) // the same on all ranks
			counts := drawPeers(draw, c.Size(), []int{1, 5, 700, 60_000}[seed%4])
			if err := meetNeighbors(ctx, c, counts, seed, seed%3 == 2, seed/4%2 == 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// On one node exchanges go through shared memory.
func TestNeighborsOfANode(t *testing.T) {
	onBothKinds(t, 1, 5, nil, func(ctx context.Context, c *planner.Comm) error {
		for seed := range uint64(4) {
			counts := drawPeers(rand.New(rand.NewPCG(seed, 8)), c.Size(), []int{5, 60_000}[seed%2])
			if err := meetNeighbors(ctx, c, counts, seed, false, seed > 1); err != nil {
				return err
			}
		}
		return nil
	})
}

// Lists that don't fit are an error on all ranks, which names the two; the communicator stays
// whole.
func TestNeighborsDisagree(t *testing.T) {
	one := func(n int) [][]byte { return [][]byte{make([]byte, n)} }
	shared := make([]byte, 4)
	for _, tc := range []struct {
		name       string
		peers      []int // of rank 0; all others have none, but rank 1 has rank 0
		send, recv [][]byte
		want, mine string // of all; of rank 0 where it differs
	}{
		{"nobody back", []int{2}, one(1), one(1), "rank 0 has peer 2, which doesn't have rank 0 as a peer", ""},
		{"not named", nil, nil, nil, "rank 1 has peer 0, which doesn't have rank 1 as a peer", ""},
		{"sizes", []int{1}, one(3), one(2), "rank 0 gives rank 1 3 elements, which expects 2", ""},
		{"too high", []int{4}, one(1), one(1), "rank 0 has peers or blocks that can't be", "peer 4: ranks are 0 to 3"},
		{"twice", []int{1, 1}, append(one(2), nil), append(one(2), nil), "rank 0 has peers or blocks that can't be", "peer 1 is there twice"},
		{"lengths", []int{1}, one(2), nil, "rank 0 has peers or blocks that can't be", "1 peers, 1 blocks to send and 0 to receive"},
		{"overlap", []int{1}, [][]byte{shared[:2]}, [][]byte{shared[1:3]}, "rank 0 has peers or blocks that can't be", "overlap"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onBothKinds(t, 2, 2, nil, func(ctx context.Context, c *planner.Comm) error {
				var peers []int
				var send, recv [][]byte
				want := tc.want
				switch c.Rank() {
				case 0:
					peers, send, recv = tc.peers, tc.send, tc.recv
					if tc.mine != "" {
						want = tc.mine
					}
				case 1:
					peers, send, recv = []int{0}, one(2), one(2)
				}
				if _, err := planner.PrepareNeighbors(ctx, c, peers, send, recv); err == nil || !strings.Contains(err.Error(), want) {
					return fmt.Errorf("rank %d: got error %v, want one with %q", c.Rank(), err, want)
				}
				return planner.Barrier(ctx, c)
			})
		})
	}
}

// A second start of an open run is an error, and leaves the copies of the first alone.
func TestNeighborsStartedTwice(t *testing.T) {
	onBothKinds(t, 2, 1, nil, func(ctx context.Context, c *planner.Comm) error {
		send, recv := [][]int{make([]int, 1), {c.Rank()}}, [][]int{make([]int, 1), {-1}}
		col, err := planner.PrepareNeighbors(ctx, c, []int{c.Rank(), 1 - c.Rank()}, send, recv)
		if err != nil {
			return err
		}
		p, err := col.Start(ctx)
		if err != nil {
			return err
		}
		if _, err := col.Start(ctx); err == nil {
			return fmt.Errorf("rank %d: a second start of an open run is no error", c.Rank())
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		if recv[1][0] != 1-c.Rank() {
			return fmt.Errorf("rank %d got %d", c.Rank(), recv[1][0])
		}
		return nil
	})
}

// A run allocates nothing, with copies and without.
func TestNeighborsAllocateNothing(t *testing.T) {
	if slowdown > 1 {
		t.Skip("the race detector allocates")
	}
	for _, together := range []bool{false, true} {
		allSucceed(t, localComms(t, "2x1", nil), func(ctx context.Context, c *planner.Comm) error {
			counts := []int{0, 0}
			counts[1-c.Rank()] = 100
			counts[c.Rank()] = 3
			peers := []int{0, 1}
			col, err := planner.PrepareNeighbors(ctx, c, peers, blocksFor(counts, peers, together), blocksFor(counts, peers, together))
			if err != nil {
				return err
			}
			var runErr error
			run := func() { runErr = col.Run(ctx) }
			for range 20 {
				run()
			}
			if n := testing.AllocsPerRun(100, run); n > 0 || runErr != nil {
				return fmt.Errorf("rank %d, together %v: %v allocations a run: %v", c.Rank(), together, n, runErr)
			}
			return nil
		})
	}
}
