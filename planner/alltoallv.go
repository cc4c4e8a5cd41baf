package planner

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/tasks"
)

// Alltoallv is [Alltoall] with a count for each pair of ranks: this rank gives
// rank i the next sendCounts[i] elements of send and gets the next recvCounts[i] elements
// of recv from it, in the order of ranks. 0 is allowed. In place a rank must give each rank
// as many elements as it gets from it.
//
// The ranks tell each other their counts, on each call. Rank i's count for rank j must be equal to
// the count rank j expects; otherwise it is an error on all ranks, naming the two. Wrong counts or
// buffers of one rank are an error on all, too. It takes at most [tasks.MaxMatrix] ranks. The
// compiled program is kept for the next call with the same counts on all ranks.
func Alltoallv[T any](ctx context.Context, c *Comm, send []T, sendCounts []int, recv []T, recvCounts []int) error {
	r, from, to, err := pairRequest(ctx, c, send, sendCounts, recv, recvCounts)
	if err != nil {
		return err
	}
	return c.runNow(ctx, r, from, to)
}

// PrepareAlltoallv compiles an [Alltoallv] for many runs. All ranks must make it at the same time: they tell
// each other their counts once.
func PrepareAlltoallv[T any](ctx context.Context, c *Comm, send []T, sendCounts []int, recv []T, recvCounts []int) (*Collective, error) {
	r, from, to, err := pairRequest(ctx, c, send, sendCounts, recv, recvCounts)
	if err != nil {
		return nil, err
	}
	return c.collective(ctx, r, from, to)
}

// PrepareAlltoallMatrix is [PrepareAlltoallv] with the counts of all pairs of ranks, and without an
// exchange. All ranks give the same matrix.
func PrepareAlltoallMatrix[T any](ctx context.Context, c *Comm, send, recv []T, counts tasks.Matrix) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.Alltoall, Matrix: counts, Count: counts.Max()}, noRoot, send, recv)
}

// pairRequest exchanges counts, and makes the request. A rank with wrong arguments tells the
// others: they would wait for it otherwise.
func pairRequest[T any](ctx context.Context, c *Comm, send []T, sendCounts []int, recv []T, recvCounts []int) (r tasks.Request, from, to []byte, err error) {
	r = tasks.Request{Coll: tasks.Alltoall}
	if err := c.checkCall(ctx); err != nil {
		return r, nil, nil, fmt.Errorf("alltoallv: %w", err)
	}
	from, to = asBytes(send), asBytes(recv)
	same := len(from) > 0 && len(to) > 0 && &from[0] == &to[0]
	wrong := errors.Join(checkCounts("send", len(send), sendCounts, c.Size()), checkCounts("receive", len(recv), recvCounts, c.Size()))
	if !same && overlap(from, to) {
		wrong = errors.Join(wrong, errOverlap)
	}
	if r, err = settlePairs[T](ctx, c, pairCounts{send: sendCounts, recv: recvCounts, inPlace: same}, wrong); err != nil {
		return r, nil, nil, fmt.Errorf("alltoallv: %w", err)
	}
	return requestOf(c, r, noRoot, send, recv)
}

// settlePairs tells all ranks this one's counts, or only that its arguments are wrong. It
// returns the request that all of them make.
func settlePairs[T any](ctx context.Context, c *Comm, mine pairCounts, wrong error) (r tasks.Request, err error) {
	r = tasks.Request{Coll: tasks.Alltoall}
	if c.Size() > tasks.MaxMatrix {
		return r, fmt.Errorf("%d ranks; allowed are %d", c.Size(), tasks.MaxMatrix)
	}
	_, err = elementOf[T](r.Coll, r.Op)
	wrong = errors.Join(err, wrong)
	mine.wrong = wrong != nil
	all, err := c.tellPairs(ctx, mine)
	if wrong != nil {
		err = wrong
	}
	if err == nil {
		r.Matrix, err = agreeOnPairs(all)
	}
	r.Count = r.Matrix.Max()
	return r, err
}

// checkCounts returns an error unless there is a count for each rank, and they add up to a buffer's
// elements.
func checkCounts(what string, elements int, counts []int, ranks int) error {
	if len(counts) != ranks {
		return fmt.Errorf("%d counts to %s, for %d ranks", len(counts), what, ranks)
	}
	sum := 0
	for rank, n := range counts {
		if n < 0 || n > elements-sum {
			return fmt.Errorf("counts %v to %s: with that of rank %d they are more than the %d elements there are, or it is negative", counts, what, rank, elements)
		}
		sum += n
	}
	if sum != elements {
		return fmt.Errorf("counts %v to %s: they add up to %d, and there are %d elements", counts, what, sum, elements)
	}
	return nil
}

// agreeOnPairs returns the matrix of the ranks' counts for each other, or an error if they don't
// agree: the same on all ranks.
func agreeOnPairs(all []pairCounts) (tasks.Matrix, error) {
	rows := make([][]int, len(all))
	for rank, counts := range all {
		if counts.wrong {
			return tasks.Matrix{}, fmt.Errorf("rank %d has counts or buffers that can't be; its own error says which", rank)
		}
		rows[rank] = counts.send
	}
	for from := range all {
		for to := range all {
			if gives, expects := all[from].send[to], all[to].recv[from]; !all[to].open && gives != expects {
				return tasks.Matrix{}, fmt.Errorf("rank %d gives rank %d %d elements, which expects %d", from, to, gives, expects)
			}
		}
	}
	for rank, counts := range all {
		for other := range all {
			if gives, gets := counts.send[other], counts.recv[other]; counts.inPlace && gives != gets {
				return tasks.Matrix{}, fmt.Errorf("rank %d works in place; it gives rank %d %d elements and gets %d, which must be equal", rank, other, gives, gets)
			}
		}
	}
	return tasks.NewMatrix(rows)
}
