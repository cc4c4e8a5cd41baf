package planner_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Four goroutine ranks on two nodes sum their gradients, again and again.
func Example() {
	err := planner.Run(context.Background(), "2x2", nil, func(ctx context.Context, comm *planner.Comm) error {
		grads := []float32{1, 2, float32(comm.Rank())}
		sum, err := planner.Allreduce(comm, grads, grads, tasks.Sum) // in place
		if err != nil {
			return err
		}
		for range 2 {
			if err := sum.Run(ctx); err != nil {
				return err
			}
		}
		if comm.Rank() == 3 {
			fmt.Println(grads)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// [16 32 24]
	// <nil>
}

func ExampleRun() {
	err := planner.Run(context.Background(), "2x4", nil, func(ctx context.Context, comm *planner.Comm) error {
		if comm.Rank() == 5 {
			return errors.New("out of luck")
		}
		return planner.BarrierNow(ctx, comm) // ends, because rank 5 does
	})
	fmt.Println(err)
	// Output: out of luck
}

// Local is for programs that start their ranks themselves.
func ExampleLocal() {
	comms, err := planner.Local("1x2", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	for _, c := range comms {
		go func() {
			defer c.Close()
			done <- planner.BarrierNow(context.Background(), c)
		}()
	}
	fmt.Println(<-done, <-done)
	// Output: <nil> <nil>
}

func ExampleEach() {
	comms, err := planner.Local("1x3", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ranks := make([]int, len(comms))
	err = planner.Each(context.Background(), comms, func(_ context.Context, c *planner.Comm) error {
		ranks[c.Rank()] = c.Rank() + 10*c.Size()
		return nil
	})
	fmt.Println(ranks, err)
	// Output: [30 31 32] <nil>
}

// everywhere runs f on four ranks of two nodes, for the examples.
func everywhere(f func(ctx context.Context, c *planner.Comm) error) {
	if err := planner.Run(context.Background(), "2x2", nil, f); err != nil {
		fmt.Println(err)
	}
}

func ExampleBcast() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		buf := make([]string, 0) // strings can't be moved as bytes
		if _, err := planner.Bcast(c, buf, 0); c.Rank() == 0 {
			fmt.Println(err)
		}
		numbers := []int{c.Rank(), 100 * c.Rank()}
		share, err := planner.Bcast(c, numbers, 3)
		if err != nil {
			return err
		}
		if err := share.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(numbers)
		}
		return nil
	})
	// Output:
	// bcast: type string can't be an element: it is no use to another rank; allowed are types without pointers
	// [3 300]
}

func ExampleReduce() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		in := []int64{int64(c.Rank()), 1}
		var out []int64 // only the root has a result
		if c.Rank() == 2 {
			out = make([]int64, 2)
		}
		sum, err := planner.Reduce(c, in, out, tasks.Sum, 2)
		if err != nil {
			return err
		}
		if err := sum.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(out)
		}
		return nil
	})
	// Output: [6 4]
}

func ExampleReduceNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		votes := []int{c.Rank() % 2}
		if c.Rank() > 0 {
			return planner.ReduceNow(ctx, c, votes, nil, tasks.Sum, 0)
		}
		err := planner.ReduceNow(ctx, c, votes, votes, tasks.Sum, 0) // the root's in place
		fmt.Println(votes)
		return err
	})
	// Output: [2]
}

func ExampleAllreduce() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		in, out := []int64{int64(c.Rank()), 1}, make([]int64, 2)
		largest, err := planner.Allreduce(c, in, out, tasks.Max)
		if err != nil {
			return err
		}
		if err := largest.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(in, out)
		}
		return nil
	})
	// Output: [2 1] [3 1]
}

// Rank 2 gets what ranks 0, 1 and 2 have, combined.
func ExampleScan() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		in, out := []int{c.Rank(), 1}, make([]int, 2)
		sums, err := planner.Scan(c, in, out, tasks.Sum)
		if err != nil {
			return err
		}
		if err := sums.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(out)
		}
		return nil
	})
	// Output: [3 3]
}

// Each rank has some elements, and learns where they begin among those of all ranks.
func ExampleExscan() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		elements := []int{10 * (c.Rank() + 1)}
		begin := []int{0} // on rank 0 it stays as it is
		before, err := planner.Exscan(c, elements, begin, tasks.Sum)
		if err != nil {
			return err
		}
		if err := before.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(begin[0], "to", begin[0]+elements[0])
		}
		return nil
	})
	// Output: 60 to 100
}

func ExampleScanNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		n := []int{c.Rank() + 1}
		if err := planner.ScanNow(ctx, c, n, n, tasks.Prod); err != nil { // in place
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(n[0])
		}
		return nil
	})
	// Output: 24
}

// Rank i sends 10i+j to rank j.
func ExampleAlltoall() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		out, in := make([]int, c.Size()), make([]int, c.Size())
		for j := range out {
			out[j] = 10*c.Rank() + j
		}
		swap, err := planner.Alltoall(c, out, in)
		if err != nil {
			return err
		}
		if err := swap.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(in)
		}
		return nil
	})
	// Output: [2 12 22 32]
}

func ExampleAlltoallNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		letters := make([][3]byte, c.Size())
		for j := range letters {
			copy(letters[j][:], fmt.Sprintf("%d>%d", c.Rank(), j))
		}
		if err := planner.AlltoallNow(ctx, c, letters, letters); err != nil { // in place
			return err
		}
		if c.Rank() == 1 {
			fmt.Printf("%s\n", letters)
		}
		return nil
	})
	// Output: [0>1 1>1 2>1 3>1]
}

// Each rank sends rank j as many of its letters as j, and gets as many from each as its own
// number.
func ExampleAlltoallv() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		var out []byte
		outCounts, inCounts := make([]int, c.Size()), make([]int, c.Size())
		for j := range c.Size() {
			out = append(out, bytes.Repeat([]byte{"abcd"[c.Rank()]}, j)...)
			outCounts[j], inCounts[j] = j, c.Rank()
		}
		in := make([]byte, c.Rank()*c.Size())
		swap, err := planner.Alltoallv(ctx, c, out, outCounts, in, inCounts)
		if err != nil {
			return err
		}
		if err := swap.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Printf("%s\n", in)
		}
		return nil
	})
	// Output: aabbccdd
}

// Words go to the rank that counts those with their first letter; nobody knows how many come.
func ExampleAlltoallBlocksNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		words := []string{"an elk", "a cat dived", "big bears dance", "all cows browse"}[c.Rank()]
		out := make([][]byte, c.Size())
		for word := range strings.FieldsSeq(words) {
			to := int(word[0] - 'a')
			out[to%4] = append(append(out[to%4], word...), ' ')
		}
		in, err := planner.AlltoallBlocksNow(ctx, c, out)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("%q\n", in) // in[i] is what rank i had
		}
		return nil
	})
	// Output: ["an elk " "a " "" "all "]
}

// Ranks send what they have for others, and learn how much comes by an alltoall of counts.
func ExampleAlltoallvNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		out, outCounts := []int{c.Rank(), c.Rank()}, make([]int, c.Size())
		outCounts[(c.Rank()+1)%c.Size()] = 2 // all of it is for the next rank
		inCounts := make([]int, c.Size())
		if err := planner.AlltoallNow(ctx, c, outCounts, inCounts); err != nil {
			return err
		}
		in := make([]int, 2)
		if err := planner.AlltoallvNow(ctx, c, out, outCounts, in, inCounts); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(inCounts, in)
		}
		return nil
	})
	// Output: [0 0 0 2] [3 3]
}

// Heat flows along a rod of which each rank has four cells. In each step a rank tells those
// beside it its outer cells, and hears theirs.
func ExampleNeighbors() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		cells, next := make([]float64, 6), make([]float64, 6) // with a halo at each end
		var peers []int
		var send, recv [][]float64
		if c.Rank() > 0 {
			peers, send, recv = append(peers, c.Rank()-1), append(send, cells[1:2]), append(recv, cells[0:1])
		} else {
			cells[0] = 64 // the rod's hot end
		}
		if c.Rank() < c.Size()-1 {
			peers, send, recv = append(peers, c.Rank()+1), append(send, cells[4:5]), append(recv, cells[5:6])
		}
		halo, err := planner.Neighbors(ctx, c, peers, send, recv)
		if err != nil {
			return err
		}
		for range 200 {
			if err := halo.Run(ctx); err != nil {
				return err
			}
			for i := 1; i <= 4; i++ {
				next[i] = (cells[i-1] + cells[i+1]) / 2
			}
			copy(cells[1:5], next[1:5])
		}
		if c.Rank() == 1 {
			fmt.Printf("%.1f\n", cells[1:5])
		}
		return nil
	})
	// Output: [44.1 40.2 36.4 32.6]
}

// A row of letters goes around a ring of ranks.
func ExampleNeighborsNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		before, behind := (c.Rank()+c.Size()-1)%c.Size(), (c.Rank()+1)%c.Size()
		letter, in := []byte{"abcd"[c.Rank()]}, make([]byte, 1)
		peers := []int{before, behind}
		if err := planner.NeighborsNow(ctx, c, peers, [][]byte{nil, letter}, [][]byte{in, nil}); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("%s\n", in)
		}
		return nil
	})
	// Output: d
}

// All ranks know that rank i has i elements for rank 0, and none for others.
func ExampleAlltoallMatrix() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		counts, err := tasks.NewMatrix([][]int{{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {3, 0, 0, 0}})
		if err != nil {
			return err
		}
		out, in := make([]int, counts.Gives(c.Rank())), make([]int, counts.Gets(c.Rank()))
		for i := range out {
			out[i] = c.Rank()
		}
		collect, err := planner.AlltoallMatrix(c, out, in, counts)
		if err != nil {
			return err
		}
		if err := collect.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(in)
		}
		return nil
	})
	// Output: [1 2 2 3 3 3]
}

func ExampleAllgather() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		mine, all := []int{c.Rank(), 10 * c.Rank()}, make([]int, 2*c.Size())
		share, err := planner.Allgather(c, mine, all)
		if err != nil {
			return err
		}
		if err := share.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [0 0 1 10 2 20 3 30]
}

func ExampleAllgatherNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		all := make([]int, c.Size())
		mine := all[c.Rank():][:1] // in place
		mine[0] = 100 + c.Rank()
		err := planner.AllgatherNow(ctx, c, mine, all)
		if c.Rank() == 1 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [100 101 102 103]
}

func ExampleGather() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		mine := []int{c.Rank() * c.Rank()}
		var all []int // only the root has a result
		if c.Rank() == 2 {
			all = make([]int, c.Size())
		}
		squares, err := planner.Gather(c, mine, all, 2)
		if err != nil {
			return err
		}
		if err := squares.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [0 1 4 9]
}

func ExampleGatherNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() > 0 {
			return planner.GatherNow(ctx, c, []int{c.Rank()}, nil, 0)
		}
		all := []int{7, 0, 0, 0}
		err := planner.GatherNow(ctx, c, all[:1], all, 0) // the root's in place
		fmt.Println(all)
		return err
	})
	// Output: [7 1 2 3]
}

func ExampleScatter() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		var all []int // only the root has something to give
		if c.Rank() == 1 {
			all = []int{0, 10, 1, 11, 2, 12, 3, 13}
		}
		mine := make([]int, 2)
		share, err := planner.Scatter(c, all, mine, 1)
		if err != nil {
			return err
		}
		if err := share.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(mine)
		}
		return nil
	})
	// Output: [3 13]
}

func ExampleReduceScatter() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		votes := []int{1, c.Rank(), 10, 100 * c.Rank()} // an element for each rank
		mine := make([]int, 1)
		sum, err := planner.ReduceScatter(c, votes, mine, tasks.Sum)
		if err != nil {
			return err
		}
		if err := sum.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(mine)
		}
		return nil
	})
	// Output: [600]
}

// Rank 0 keeps nothing of the sums, rank 2 most.
func ExampleReduceScatterv() {
	counts := []int{0, 1, 3, 1}
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		buf := []float64{1, 2, 3, 4, 5}
		mine := buf[:counts[c.Rank()]] // in place: the rest of buf is lost
		sum, err := planner.ReduceScatterv(c, buf, mine, counts, tasks.Sum)
		if err != nil {
			return err
		}
		if err := sum.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(mine)
		}
		return nil
	})
	// Output: [8 12 16]
}

// Each rank gives as many elements as its number says.
func ExampleAllgatherv() {
	counts := []int{0, 1, 2, 3}
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		mine, all := []int{7, 8, 9}[:c.Rank()], make([]int, 0+1+2+3)
		share, err := planner.Allgatherv(c, mine, all, counts)
		if err != nil {
			return err
		}
		if err := share.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [7 7 8 7 8 9]
}

// Rank 1 collects as many elements of each rank as its number says.
func ExampleGatherv() {
	counts := []int{0, 1, 2, 3}
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		mine, all := []int{7, 8, 9}[:c.Rank()], []int(nil)
		if c.Rank() == 1 {
			all = make([]int, 0+1+2+3)
		}
		collect, err := planner.Gatherv(c, mine, all, counts, 1)
		if err != nil {
			return err
		}
		if err := collect.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [7 7 8 7 8 9]
}

// Rank 0 keeps nothing of what it has, rank 3 gets most.
func ExampleScatterv() {
	counts := []int{0, 1, 2, 3}
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		var all []int
		if c.Rank() == 0 {
			all = []int{1, 2, 3, 4, 5, 6}
		}
		mine := make([]int, counts[c.Rank()])
		share, err := planner.Scatterv(c, all, mine, counts, 0)
		if err != nil {
			return err
		}
		if err := share.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(mine)
		}
		return nil
	})
	// Output: [4 5 6]
}

func ExampleBarrier() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		all, err := planner.Barrier(c)
		if err != nil {
			return err
		}
		for range 3 {
			if err := all.Run(ctx); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			fmt.Println(all.Request(), "run", c.Counters().Runs, "times")
		}
		return nil
	})
	// Output: barrier run 3 times
}

func ExampleBcastNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		word := []byte("____")
		if c.Rank() == 0 {
			copy(word, "same")
		}
		if err := planner.BcastNow(ctx, c, word, 0); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Printf("%s\n", word)
		}
		return nil
	})
	// Output: same
}

func ExampleAllreduceNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		at := []tasks.Loc[float64]{{Value: float64((c.Rank() + 2) % 4), Index: int64(c.Rank())}}
		if err := planner.AllreduceNow(ctx, c, at, at, tasks.MinLoc); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Printf("the smallest is %g, on rank %d\n", at[0].Value, at[0].Index)
		}
		return nil
	})
	// Output: the smallest is 0, on rank 2
}

// The loss of a step is one number, and so is its mean over all ranks.
func ExampleAllreduceValue() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		loss := 0.5 * float64(c.Rank())
		mean, err := planner.AllreduceValue(ctx, c, loss, tasks.Avg)
		if err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(loss, mean)
		}
		return nil
	})
	// Output: 1 0.75
}

func ExampleBarrierNow() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == 1 {
			fmt.Println("before")
		}
		if err := planner.BarrierNow(ctx, c); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println("after")
		}
		return nil
	})
	// Output:
	// before
	// after
}

// A started collective goes on while its rank computes.
func ExampleCollective_Start() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		grads := []float64{1, 2, 3, 4}
		mean, err := planner.Allreduce(c, grads, grads, tasks.Average)
		if err != nil {
			return err
		}
		pending, err := mean.Start(ctx)
		if err != nil {
			return err
		}
		other := c.Rank() * c.Rank() // anything but grads may be touched
		if err := pending.Wait(); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(other, grads)
		}
		return nil
	})
	// Output: 9 [1 2 3 4]
}

func ExampleSend() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		const tag = 7
		switch c.Rank() {
		case 0:
			return planner.Send(ctx, c, 3, tag, []int32{3, 1, 4})
		case 3:
			buf := make([]int32, 10)
			n, err := planner.Recv(ctx, c, 0, tag, buf)
			if err != nil {
				return err
			}
			fmt.Println(n, buf[:n])
		}
		return nil
	})
	// Output: 3 [3 1 4]
}

// Rank 0 hands out work to whoever has done its last.
func ExampleRecvAny() {
	const idle, work, jobs = 0, 1, 10
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() > 0 {
			for sum := 0; ; {
				job := make([]int, 1)
				if err := planner.Send(ctx, c, 0, idle, []int{sum}); err != nil {
					return err
				}
				if _, err := planner.Recv(ctx, c, 0, work, job); err != nil || job[0] < 0 {
					return err
				}
				sum = job[0] * job[0]
			}
		}
		total := 0
		for job := range jobs + c.Size() - 1 {
			done := make([]int, 1)
			from, err := planner.RecvAny(ctx, c, idle, done)
			if err != nil {
				return err
			}
			total += done[0]
			next := job
			if job >= jobs {
				next = -1 // there is no more
			}
			if err := planner.Send(ctx, c, from.Source, work, []int{next}); err != nil {
				return err
			}
		}
		fmt.Println(total)
		return nil
	})
	// Output: 285
}

// Every rank gives its number to the next: nobody waits before having posted both.
func ExampleStartSend() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		next, before := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		mine, got := []int{c.Rank()}, make([]int, 1)
		out, err := planner.StartSend(ctx, c, next, 0, mine)
		if err != nil {
			return err
		}
		in, err := planner.StartRecv(ctx, c, before, 0, got)
		if err != nil {
			return err
		}
		if _, err := out.Wait(); err != nil {
			return err
		}
		n, err := in.Wait()
		if c.Rank() == 0 {
			fmt.Println(n, got)
		}
		return err
	})
	// Output: 1 [3]
}

func ExampleCollective_Explain() {
	o := &planner.Options{Plan: "allreduce:fs=256KiB,i=adapt/binomial"}
	err := planner.Run(context.Background(), "4x2", o, func(_ context.Context, c *planner.Comm) error {
		if c.Rank() != 0 {
			return nil
		}
		sum, err := planner.Allreduce(c, make([]float32, 1<<20), make([]float32, 1<<20), tasks.Sum)
		if err != nil {
			return err
		}
		what, why, _ := strings.Cut(sum.Explain(), "\n") // what it is for; plan, reasons, alternatives
		fmt.Println(what, strings.Contains(why, "forced by Options.Plan"))
		fmt.Println("plan:", sum.Plan())
		share, err := planner.Bcast(c, make([]float32, 1<<20), 0)
		if err != nil {
			return err
		}
		fmt.Println("plan:", share.Plan())
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// allreduce 1048576 f32 sum on 4x2 true
	// plan: shape=han,fs=256KiB,w=8,i=adapt/binomial,s=solo
	// plan: shape=han,fs=30KiB,w=8,i=adapt/chain,s=solo
}

func ExampleOptions() {
	o := &planner.Options{Plan: "shape=flat;allreduce:i=adapt/chain;bcast:i=adapt/binomial"}
	err := planner.Run(context.Background(), "2x1", o, func(ctx context.Context, c *planner.Comm) error {
		all, err := planner.Bcast(c, make([]byte, 100), 0)
		if err == nil && c.Rank() == 0 {
			fmt.Println(all.Plan())
		}
		return err
	})
	fmt.Println(err)
	_, err = planner.Local("2x1", &planner.Options{Plan: "i=adapt/bush"})
	why, known, _ := strings.Cut(err.Error(), "; ")
	fmt.Println(why, known != "")
	// Output:
	// shape=flat,fs=all,w=4,i=adapt/binomial
	// <nil>
	// Options.Plan: i=adapt/bush: unknown algorithm "bush" true
}

// However ranks are placed, deterministic sums have the same bits.
func ExampleOptions_deterministic() {
	numbers := []float32{1e8, 1, -1e8, 1}
	for _, topo := range []string{"4x1", "1x4", "2x2/rr"} {
		o := &planner.Options{Deterministic: true}
		err := planner.Run(context.Background(), topo, o, func(ctx context.Context, c *planner.Comm) error {
			sum := numbers[c.Rank():][:1:1]
			result := make([]float32, 1)
			if err := planner.AllreduceNow(ctx, c, sum, result, tasks.Sum); err != nil {
				return err
			}
			if c.Rank() == 3 {
				fmt.Println(result[0])
			}
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 0
	// 0
	// 0
}

// A failure on one rank is an error on all, and says where it was.
func ExamplePeerError() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == 2 {
			return errors.New("the disk is full")
		}
		err := planner.BarrierNow(ctx, c)
		var peer *planner.PeerError
		if errors.As(err, &peer) && c.Rank() == 0 {
			fmt.Printf("rank %d: %v\n", peer.Rank, peer.Err)
		}
		return nil
	})
	// Unordered output:
	// rank 2: the disk is full
	// the disk is full
}

// Split makes communicators of some ranks; here one per node.
func ExampleComm_Split() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		node := c.Rank() / 2
		mine, err := c.Split(ctx, node, c.Rank())
		if err != nil {
			return err
		}
		defer mine.Close()
		sum := []int{c.Rank()}
		if err := planner.AllreduceNow(ctx, mine, sum, sum, tasks.Sum); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Printf("rank %d of %d: %d\n", mine.Rank(), mine.Size(), sum[0])
		}
		return nil
	})
	// Output: rank 1 of 2: 5
}

func ExampleComm_Tune() {
	err := planner.Run(context.Background(), "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		grads := make([]float32, 1000)
		sum, err := planner.Allreduce(c, grads, grads, tasks.Sum)
		if err != nil {
			return err
		}
		tuner, err := c.Tune(planner.Tuning{Plans: []string{"allreduce:fs=1KiB", "allreduce:shape=flat"}, Of: []*planner.Collective{sum}})
		if err != nil {
			return err
		}
		for range 100 {
			if err := tuner.Run(ctx, sum.Run); err != nil {
				return err
			}
		}
		tuner.Freeze() // what holds then stays: tuner.Explain says what, and what others took
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleAlloc() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		grads, err := planner.Alloc[float64](c, 3)
		if err != nil {
			return err
		}
		defer planner.Free(c, grads)
		grads[c.Rank()%3] = 1
		if err := planner.AllreduceNow(ctx, c, grads, grads, tasks.Sum); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(grads)
		}
		return nil
	})
	// Output: [2 1 1]
}

// A library for another language knows elements only when it runs, and its ranks may know
// already who they are.
func ExampleComm_Prepare() {
	err := planner.Run(context.Background(), "1x3", nil, func(ctx context.Context, comm *planner.Comm) error {
		id := make([]byte, 8)
		if comm.Rank() == 0 {
			n, err := comm.DrawID()
			if err != nil {
				return err
			}
			binary.NativeEndian.PutUint64(id, n)
		}
		number, err := comm.Prepare(tasks.Request{Coll: tasks.Bcast, Count: 1, Type: tasks.Uint64}, nil, id)
		if err != nil {
			return err
		}
		if err := number.Run(ctx); err != nil || comm.Rank() == 1 {
			return err
		}
		ends, err := comm.Sub(binary.NativeEndian.Uint64(id), []int{2, 0})
		if err != nil {
			return err
		}
		if comm.Rank() == 0 {
			fmt.Println("rank", ends.Rank(), "of", ends.Size())
		}
		return planner.BarrierNow(ctx, ends)
	})
	fmt.Println(err)
	// Output:
	// rank 1 of 2
	// <nil>
}
