package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// averaged is a type with averages.
type averaged[T comparable] struct {
	narrow  func(float64) T
	wide    func(T) float64
	largest float64 // that n ranks may give
	epsilon float64 // of one rounding
}

// The mean of large values is in range: of up to half of a type's largest for Float16, of up to a share
// for each rank for other types. So it is for every collective, in place and apart, called in each way;
// what is sent stays as it is, and so does a buffer that gets nothing.
func TestAveragesStayInRange(t *testing.T) {
	for topo, plans := range map[string][]string{
		"1x8": {"", "fs=16,w=2"},
		"5":   {"", "order=tree"},
		"3x2": {"", "shape=han,fs=16,w=2,i=nbc/recdoubling,s=solo"},
		"1":   {""},
	} {
		for _, plan := range plans {
			succeed(t, topo, &planner.Options{Plan: plan}, func(ctx context.Context, c *planner.Comm) error {
				n := float64(c.Size())
				return errors.Join(
					checkAverages(ctx, c, averaged[half.Float16]{
						func(x float64) half.Float16 { return half.NewFloat16(float32(x)) },
						func(x half.Float16) float64 { return float64(x.Float32()) }, 65504. / 2, 0x1p-11,
					}),
					checkAverages(ctx, c, averaged[half.BFloat16]{
						func(x float64) half.BFloat16 { return half.NewBFloat16(float32(x)) },
						func(x half.BFloat16) float64 { return float64(x.Float32()) }, math.MaxFloat32 / n / 2, 0x1p-8,
					}),
					checkAverages(ctx, c, averaged[float32]{
						func(x float64) float32 { return float32(x) }, func(x float32) float64 { return float64(x) },
						math.MaxFloat32 / n / 2, 0x1p-24,
					}),
					checkAverages(ctx, c, averaged[float64]{
						func(x float64) float64 { return x }, func(x float64) float64 { return x }, math.MaxFloat64 / n / 2, 0x1p-53,
					}))
			})
		}
	}
}

// averageWays is how a collective is called.
var averageWays = []string{"now", "prepared", "started"}

func checkAverages[T comparable](ctx context.Context, c *planner.Comm, e averaged[T]) error {
	const count = 21
	for _, coll := range []tasks.Collective{tasks.Allreduce, tasks.Reduce, tasks.ReduceScatter, tasks.Scan, tasks.Exscan} {
		for _, inPlace := range []bool{false, true} {
			for _, way := range averageWays {
				if err := e.check(ctx, c, coll, count, inPlace, way); err != nil {
					return fmt.Errorf("%v of %T, in place %v, %s: rank %d: %w", coll, *new(T), inPlace, way, c.Rank(), err)
				}
			}
		}
	}
	return nil
}

// value is element i of a rank: most are close to the largest, some are zero or of the other sign.
func (e averaged[T]) value(rank, i int) float64 {
	x := e.largest * (1 - float64((rank*7+i)%5)/64)
	switch i % 7 {
	case 5:
		x *= float64(rank%3 - 1)
	case 6:
		x = 0
	}
	return e.wide(e.narrow(x))
}

// mean is the average of element i over the first n ranks.
func (e averaged[T]) mean(n, i int) (x float64) {
	for rank := range n {
		x += e.value(rank, i) / float64(n)
	}
	return x
}

func (e averaged[T]) check(ctx context.Context, c *planner.Comm, coll tasks.Collective, count int, inPlace bool, way string) error {
	me, root, elements := c.Rank(), c.Size()-1, count
	if coll == tasks.ReduceScatter {
		elements *= c.Size()
	}
	given := make([]T, elements)
	for i := range given {
		given[i] = e.narrow(e.value(me, i))
	}
	untouched := slices.Repeat([]T{e.narrow(1)}, count)
	send, recv := slices.Clone(given), slices.Clone(untouched)
	if coll == tasks.Reduce && me != root {
		recv = nil
	} else if inPlace {
		recv = send[:count]
	}
	if err := callAverage(ctx, c, coll, send, recv, root, way); err != nil {
		return err
	}
	from, n := 0, c.Size()
	switch coll {
	case tasks.ReduceScatter:
		from = me * count
	case tasks.Scan:
		n = me + 1
	case tasks.Exscan:
		if n = me; n == 0 {
			if inPlace {
				untouched = given
			}
			if !slices.Equal(recv, untouched) {
				return fmt.Errorf("what gets nothing is %v", recv)
			}
		}
	}
	for i, got := range recv {
		want, off := e.mean(n, from+i), e.epsilon*float64(n+2)*e.largest
		if d := math.Abs(e.wide(got) - want); n > 0 && !(d <= off) {
			return fmt.Errorf("element %d is %v, want %v", i, e.wide(got), want)
		}
	}
	if (!inPlace || recv == nil) && !slices.Equal(send, given) {
		return errors.New("what was sent has changed")
	}
	return nil
}

func callAverage[T any](ctx context.Context, c *planner.Comm, coll tasks.Collective, send, recv []T, root int, way string) (err error) {
	if way == "now" {
		switch coll {
		case tasks.Allreduce:
			return planner.Allreduce(ctx, c, send, recv, tasks.Average)
		case tasks.Reduce:
			return planner.Reduce(ctx, c, send, recv, tasks.Average, root)
		case tasks.ReduceScatter:
			return planner.ReduceScatter(ctx, c, send, recv, tasks.Average)
		case tasks.Scan:
			return planner.Scan(ctx, c, send, recv, tasks.Average)
		}
		return planner.Exscan(ctx, c, send, recv, tasks.Average)
	}
	var col *planner.Collective
	switch coll {
	case tasks.Allreduce:
		col, err = planner.PrepareAllreduce(ctx, c, send, recv, tasks.Average)
	case tasks.Reduce:
		col, err = planner.PrepareReduce(ctx, c, send, recv, tasks.Average, root)
	case tasks.ReduceScatter:
		col, err = planner.PrepareReduceScatter(ctx, c, send, recv, tasks.Average)
	case tasks.Scan:
		col, err = planner.PrepareScan(ctx, c, send, recv, tasks.Average)
	default:
		col, err = planner.PrepareExscan(ctx, c, send, recv, tasks.Average)
	}
	if err != nil {
		return err
	}
	if way == "prepared" {
		return col.Run(ctx)
	}
	p, err := col.Start(ctx)
	if err != nil {
		return err
	}
	return p.Wait(ctx)
}

// A call that is refused has not touched what it would average in place.
func TestRefusedAverageTouchesNothing(t *testing.T) {
	refused := make(chan struct{})
	succeed(t, "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		x := []half.Float16{half.NewFloat16(40000)}
		col, err := planner.PrepareAllreduce(ctx, c, x, x, tasks.Average)
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			<-refused
			return col.Run(ctx)
		}
		defer close(refused)
		p, err := col.Start(ctx)
		if err != nil {
			return err
		}
		if _, err := col.Start(ctx); !errors.Is(err, executor.ErrBusy) {
			return fmt.Errorf("a second start: %v, want %v", err, executor.ErrBusy)
		}
		refused <- struct{}{}
		if err := p.Wait(ctx); err != nil || x[0].Float32() != half.NewFloat16(40000).Float32() {
			return fmt.Errorf("%v, %w", x[0].Float32(), err)
		}
		return nil
	})
}
