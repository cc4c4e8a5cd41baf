// Command ways fails in a way of your choice. It shows what the ranks and the launcher then
// say. Where one rank does it wrong, it is rank 1.
//
//	tierflow run -n 4 -- ways panic
//
// Without a way it lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		log.Fatal("ways: ", err)
	}
}

// run joins the job and fails.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 || ways[args[0]] == nil {
		return fmt.Errorf("give one of the ways: %s", strings.Join(slices.Sorted(maps.Keys(ways)), " "))
	}
	comm, err := planner.Join(ctx, options(args[0]))
	if err != nil {
		return err
	}
	defer comm.Close()
	if err = fail(ctx, comm, args[0]); err == nil {
		fmt.Fprintln(out, "nothing failed here")
	}
	return err
}

// options let calls without an end be reported after a second. A deadlock is told to all ranks at once after the limit of calls:
// a receive whose own context ends breaks nothing, so then each rank would find out for itself.
func options(way string) *planner.Options {
	o := &planner.Options{StallAfter: time.Second}
	if way == "ring" {
		o.CallTimeout = 5 * time.Second
	}
	return o
}

// fail makes a call that succeeds, then one that fails, then another: ranks without a part in the
// second hear of it there.
func fail(ctx context.Context, c *planner.Comm, way string) error {
	err := add(ctx, c, tasks.Sum)
	if err == nil {
		err = ways[way](ctx, c, c.Rank() == 1)
	}
	if err == nil {
		err = add(ctx, c, tasks.Sum)
	}
	return err
}

// add combines the ranks' numbers.
func add(ctx context.Context, c *planner.Comm, op tasks.Op) error {
	numbers := []int{c.Rank(), 1}
	return planner.Allreduce(ctx, c, numbers, numbers, op)
}

var errDisk = errors.New("the disk is full")

// ways are run by all ranks; wrong is true on rank 1.
var ways = map[string]func(ctx context.Context, c *planner.Comm, wrong bool) error{
	// A rank ends.
	"panic":  alone(func() error { panic("boom") }),
	"error":  alone(func() error { return errDisk }),
	"fatal":  alone(func() error { log.Fatal(errDisk); return nil }),
	"exit":   alone(func() error { os.Exit(3); return nil }),
	"goexit": alone(func() error { runtime.Goexit(); return nil }),
	"kill":   alone(func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }),
	"abort": func(_ context.Context, c *planner.Comm, wrong bool) error {
		if wrong {
			return c.Abort(errDisk)
		}
		return nil
	},
	"close": func(_ context.Context, c *planner.Comm, wrong bool) error {
		if wrong {
			return c.Close() // and the next call uses it
		}
		return nil
	},

	// A rank doesn't come, or nobody does.
	"late": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		if wrong {
			time.Sleep(2 * time.Second)
			return nil
		}
		return add(ctx, c, tasks.Sum)
	},
	"stuck": alone(func() error { time.Sleep(3 * time.Second); return errDisk }), // or it loops forever
	"cancel": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if wrong {
			cancel(errDisk)
		}
		return add(ctx, c, tasks.Sum)
	},
	"ring": func(ctx context.Context, c *planner.Comm, _ bool) error { // all receive first
		_, err := planner.Recv(ctx, c, (c.Rank()+1)%c.Size(), 0, []int{0})
		return err
	},
	"anybody": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		if wrong {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		_, err := planner.RecvAny(ctx, c, 0, []int{0})
		return err
	},

	// Ranks don't agree.
	"count": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		numbers := make([]float32, pick(wrong, 10, 1000))
		return planner.Allreduce(ctx, c, numbers, numbers, tasks.Sum)
	},
	"op": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		return add(ctx, c, pick(wrong, tasks.Max, tasks.Min))
	},
	"root": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		return planner.Bcast(ctx, c, make([]int, 1000), pick(wrong, 2, 0))
	},
	"type": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		if wrong {
			return planner.Allreduce(ctx, c, []float32{1, 2}, []float32{0, 0}, tasks.Sum)
		}
		return add(ctx, c, tasks.Sum)
	},
	// A call that can't be.
	"nil": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		return planner.Barrier(ctx, pick(wrong, nil, c))
	},
	"length": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		return planner.Allreduce(ctx, c, make([]int, 3), make([]int, pick(wrong, 4, 3)), tasks.Sum)
	},
	"noroot": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		return planner.Bcast(ctx, c, []int{1}, pick(wrong, 7, 0))
	},
	"twice": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		sum, err := planner.PrepareAllreduce(ctx, c, []int{1}, []int{0}, tasks.Sum)
		if err != nil {
			return err
		}
		time.Sleep(pick(wrong, 0, 200*time.Millisecond)) // rank 1's first can't end before
		pending, err := sum.Start(ctx)
		if err == nil && wrong {
			_, err = sum.Start(ctx) // before Wait
		}
		return errors.Join(err, pending.Wait(ctx))
	},

	// An operation doing forbidden things.
	"op-panic": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		return add(ctx, c, spoilt(wrong, func() { panic("boom") }))
	},
	"op-goexit": func(ctx context.Context, c *planner.Comm, wrong bool) error {
		return add(ctx, c, spoilt(wrong, runtime.Goexit))
	},
	"op-calls": func(ctx context.Context, c *planner.Comm, wrong bool) error { // on its own communicator
		return add(ctx, c, spoilt(wrong, func() {
			if err := planner.Barrier(ctx, c); err != nil {
				panic(err)
			}
		}))
	},
}

// alone is a way in which only one rank does anything.
func alone(do func() error) func(ctx context.Context, c *planner.Comm, wrong bool) error {
	return func(_ context.Context, _ *planner.Comm, wrong bool) error {
		if wrong {
			return do()
		}
		return nil
	}
}

// spoilt is a sum that does something else first, if wrong.
func spoilt(wrong bool, first func()) tasks.Op {
	return tasks.UserOp("spoilt", true, func(a, b int) int {
		if wrong {
			first()
		}
		return a + b
	})
}

func pick[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}
