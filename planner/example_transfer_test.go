package planner_test

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/planner"
)

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
		if _, err := out.Wait(ctx); err != nil {
			return err
		}
		n, err := in.Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println(n, got)
		}
		return err
	})
	// Output: 1 [3]
}
