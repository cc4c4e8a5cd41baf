package planner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// Four goroutine ranks on two nodes sum their gradients, again and again.
func Example() {
	err := planner.Run(context.Background(), "2x2", nil, func(ctx context.Context, comm *planner.Comm) error {
		grads := []float32{1, 2, float32(comm.Rank())}
		sum, err := planner.PrepareAllreduce(ctx, comm, grads, grads, tasks.Sum) // in place
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
		return planner.Barrier(ctx, comm) // ends, because rank 5 does
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
			done <- planner.Barrier(context.Background(), c)
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

func ExamplePrepareBarrier() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		all, err := planner.PrepareBarrier(ctx, c)
		if err != nil {
			return err
		}
		for range 3 {
			if err := all.Run(ctx); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			fmt.Println(all.Request(), "run", raw.Counters(c).Runs, "times")
		}
		return nil
	})
	// Output: barrier run 3 times
}

func ExampleBarrier() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == 1 {
			fmt.Println("before")
		}
		if err := planner.Barrier(ctx, c); err != nil {
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
		mean, err := planner.PrepareAllreduce(ctx, c, grads, grads, tasks.Average)
		if err != nil {
			return err
		}
		pending, err := mean.Start(ctx)
		if err != nil {
			return err
		}
		other := c.Rank() * c.Rank() // anything but grads may be touched
		if err := pending.Wait(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(other, grads)
		}
		return nil
	})
	// Output: 9 [1 2 3 4]
}

func ExampleCollective_Explain() {
	o := &planner.Options{Plan: "allreduce:fs=256KiB,i=adapt/binomial"}
	err := planner.Run(context.Background(), "4x2", o, func(_ context.Context, c *planner.Comm) error {
		if c.Rank() != 0 {
			return nil
		}
		sum, err := planner.PrepareAllreduce(context.Background(), c, make([]float32, 1<<20), make([]float32, 1<<20), tasks.Sum)
		if err != nil {
			return err
		}
		what, why, _ := strings.Cut(sum.Explain(), "\n") // what it is for; plan, reasons, alternatives
		fmt.Println(what, strings.Contains(why, "forced by Options.Plan"))
		fmt.Println("plan:", sum.Plan())
		share, err := planner.PrepareBcast(context.Background(), c, make([]float32, 1<<20), 0)
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
		all, err := planner.PrepareBcast(ctx, c, make([]byte, 100), 0)
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
			if err := planner.Allreduce(ctx, c, sum, result, tasks.Sum); err != nil {
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
		err := planner.Barrier(ctx, c)
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
		if err := planner.Allreduce(ctx, mine, sum, sum, tasks.Sum); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Printf("rank %d of %d: %d\n", mine.Rank(), mine.Size(), sum[0])
		}
		return nil
	})
	// Output: rank 1 of 2: 5
}

func ExampleAlloc() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		grads, err := planner.Alloc[float64](c, 3)
		if err != nil {
			return err
		}
		defer planner.Free(c, grads)
		grads[c.Rank()%3] = 1
		if err := planner.Allreduce(ctx, c, grads, grads, tasks.Sum); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(grads)
		}
		return nil
	})
	// Output: [2 1 1]
}
