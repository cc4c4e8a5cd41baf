package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// swap runs an alltoallv of rows[i][j] elements from rank i to rank j, and checks each.
func swap(ctx context.Context, c *planner.Comm, rows [][]int, inPlace, now bool) error {
	me, gives, gets := c.Rank(), 0, 0
	recvCounts := make([]int, c.Size())
	for other := range rows {
		recvCounts[other] = rows[other][me]
		gives, gets = gives+rows[me][other], gets+rows[other][me]
	}
	recv := make([]int32, gets)
	send := make([]int32, gives)
	if inPlace {
		send = recv
	}
	at := 0
	for to, n := range rows[me] {
		for i := range n {
			send[at] = int32(me*1_000_000 + to*10_000 + i%10_000)
			at++
		}
	}
	if now {
		if err := planner.Alltoallv(ctx, c, send, rows[me], recv, recvCounts); err != nil {
			return err
		}
	} else {
		col, err := planner.PrepareAlltoallv(ctx, c, send, rows[me], recv, recvCounts)
		if err != nil {
			return err
		}
		if err := col.Run(ctx); err != nil {
			return err
		}
	}
	at = 0
	for from, n := range recvCounts {
		for i := range n {
			if want := int32(from*1_000_000 + me*10_000 + i%10_000); recv[at] != want {
				return fmt.Errorf("rank %d: element %d from rank %d is %d, want %d", me, i, from, recv[at], want)
			}
			at++
		}
	}
	return nil
}

// Matrices of all kinds: dense, empty, with empty rows and columns, one huge block.
func TestAlltoallv(t *testing.T) {
	onBothKinds(t, 3, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		draw := rand.New(rand.NewPCG(1, 2)) // the same on all ranks
		for round := range 12 {
			inPlace := round%3 == 2
			rows := make([][]int, c.Size())
			for from := range rows {
				rows[from] = make([]int, c.Size())
				for to := range rows {
					rows[from][to] = draw.IntN(300) * min(1, draw.IntN(3)) * min(1, (from+round)%3) * min(1, (to+round)%4)
					if inPlace && to < from {
						rows[from][to] = rows[to][from]
					}
				}
			}
			if round%4 == 1 {
				from, to := draw.IntN(c.Size()), draw.IntN(c.Size())
				rows[from][to] = 300_000
				if inPlace {
					rows[to][from] = 300_000
				}
			}
			if err := swap(ctx, c, rows, inPlace, round%2 == 0); err != nil {
				return fmt.Errorf("%v, in place %v: %w", rows, inPlace, err)
			}
		}
		return nil
	})
}

// What ranks don't agree on, and what is wrong on one of them, is an error on all before
// anything is sent; the communicator works as before.
func TestAlltoallvMismatch(t *testing.T) {
	ones := func() []int { return []int{1, 1, 1, 1} }
	for _, test := range []struct {
		name string
		call func(ctx context.Context, c *planner.Comm, buf []int32) error
		want string // on all ranks
		own  string // on rank 2, if that is another one
	}{
		{"a block that is expected longer", func(ctx context.Context, c *planner.Comm, buf []int32) error {
			recvs := ones()
			if c.Rank() == 2 {
				recvs[1] = 3
			}
			_, err := planner.PrepareAlltoallv(ctx, c, buf[:4], ones(), make([]int32, 4+2*(c.Rank()/2*(1-c.Rank()%2))), recvs)
			return err
		}, "rank 1 gives rank 2 1 elements, which expects 3", ""},
		{"too few counts", func(ctx context.Context, c *planner.Comm, buf []int32) error {
			sends := ones()
			if c.Rank() == 2 {
				sends = sends[:3]
			}
			return planner.Alltoallv(ctx, c, buf[:4], sends, make([]int32, 4), ones())
		}, "rank 2 has counts or buffers that can't be", "3 counts to send, for 4 ranks"},
		{"a negative count", func(ctx context.Context, c *planner.Comm, buf []int32) error {
			sends := ones()
			if c.Rank() == 2 {
				sends = []int{3, -1, 1, 1}
			}
			return planner.Alltoallv(ctx, c, buf[:4], sends, make([]int32, 4), ones())
		}, "rank 2 has counts or buffers that can't be", "counts [3 -1 1 1] to send: "},
		{"a short buffer", func(ctx context.Context, c *planner.Comm, buf []int32) error {
			recv := make([]int32, 4)
			if c.Rank() == 2 {
				recv = recv[:3]
			}
			return planner.Alltoallv(ctx, c, buf[:4], ones(), recv, ones())
		}, "rank 2 has counts or buffers that can't be", "counts [1 1 1 1] to receive: "},
		{"buffers that overlap", func(ctx context.Context, c *planner.Comm, buf []int32) error {
			recv := make([]int32, 4)
			if c.Rank() == 2 {
				recv = buf[1:5]
			}
			return planner.Alltoallv(ctx, c, buf[:4], ones(), recv, ones())
		}, "rank 2 has counts or buffers that can't be", "send and receive buffers overlap in part"},
		{"uneven in place", func(ctx context.Context, c *planner.Comm, buf []int32) error {
			sends, recvs := [][]int{{0, 0, 2, 0}, {0, 0, 0, 0}, {1, 0, 1, 0}, {0, 0, 0, 0}}, [][]int{{0, 0, 1, 0}, {0, 0, 0, 0}, {2, 0, 1, 0}, {0, 0, 0, 0}}
			recv := make([]int32, []int{1, 0, 3, 0}[c.Rank()])
			if c.Rank() == 2 {
				recv = buf[:3]
			}
			return planner.Alltoallv(ctx, c, buf[:2*(1-c.Rank()%2)], sends[c.Rank()], recv, recvs[c.Rank()])
		}, "rank 2 works in place; it gives rank 0 1 elements and gets 2, which must be equal", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			onBothKinds(t, 2, 2, nil, func(ctx context.Context, c *planner.Comm) error {
				want := test.want
				if c.Rank() == 2 && test.own != "" {
					want = test.own
				}
				if err := test.call(ctx, c, make([]int32, 8)); err == nil || !strings.Contains(err.Error(), want) {
					return fmt.Errorf("got error %w, want %q", err, want)
				}
				return swap(ctx, c, [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}, false, false)
			})
		})
	}
}

// Ranks that call something else hear of it, and so do those who tell their counts.
func TestAlltoallvBesideAnother(t *testing.T) {
	err := run(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == 3 {
			return planner.Barrier(ctx, c)
		}
		return swap(ctx, c, [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}, false, true)
	})
	if !errors.Is(err, planner.ErrMismatch) || !strings.Contains(err.Error(), "the counts of an alltoallv") || !strings.Contains(err.Error(), "barrier") {
		t.Errorf("got error %v", err)
	}
}
