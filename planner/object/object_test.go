package object_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/object"
)

// record has what elements of fixed size can't have.
type record struct {
	Name string
	Tags map[string][]int
	Next *record
	When time.Time
}

// of is rank r's record: the higher the longer.
func of(r int) record {
	v := record{Name: strings.Repeat("name", 500*r), Tags: map[string][]int{"of": {r, r + 1}}, When: time.Unix(int64(r), 0).UTC()}
	if r > 0 {
		v.Next = &record{Name: "behind", When: time.Unix(5, 0).UTC()}
	}
	return v
}

func allOf(n int) (all []record) {
	for r := range n {
		all = append(all, of(r))
	}
	return all
}

// same complains about a difference.
func same[T any](what string, got, want T, err error) error {
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		return fmt.Errorf("%s: %v\n%s", what, err, diff)
	}
	return nil
}

// Values come as they were, whatever their sizes, from each root.
func TestValues(t *testing.T) {
	for _, spec := range []string{"1", "3", "2x2"} {
		err := planner.Run(t.Context(), spec, nil, func(ctx context.Context, c *planner.Comm) error {
			n, me := c.Size(), c.Rank()
			all := allOf(n)
			for root := range n {
				v := of(me)
				err := object.Bcast(ctx, c, &v, root)
				if err := same("bcast", v, of(root), err); err != nil {
					return err
				}
				var want []record
				if me == root {
					want = all
				}
				got, err := object.Gather(ctx, c, of(me), root)
				if err := same("gather", got, want, err); err != nil {
					return err
				}
				mine, err := object.Scatter(ctx, c, want, root)
				if err := same("scatter", mine, of(me), err); err != nil {
					return err
				}
			}
			got, err := object.Allgather(ctx, c, of(me))
			if err := same("allgather", got, all, err); err != nil {
				return err
			}
			from, err := object.Alltoall(ctx, c, all)
			var want []record
			for range n {
				want = append(want, of(me))
			}
			if err := same("alltoall", from, want, err); err != nil {
				return err
			}
			if me == 0 {
				sum := 0
				for range n - 1 {
					v, from, err := object.RecvAny[record](ctx, c, 4)
					if err := same("receive from any", v, of(from), err); err != nil {
						return err
					}
					sum += from
				}
				return same("senders", sum, n*(n-1)/2, nil)
			}
			if err := object.Send(ctx, c, 0, 4, of(me)); err != nil {
				return err
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// What can't be encoded or decoded is an error on all ranks that would get it, and nobody hangs.
func TestNoValues(t *testing.T) {
	type hidden struct{ x int }
	for name, c := range map[string]struct {
		call func(ctx context.Context, c *planner.Comm) error
		want []string // by rank
	}{
		"bcast": {
			func(ctx context.Context, c *planner.Comm) error { return object.Bcast(ctx, c, &hidden{1}, 1) },
			[]string{"object: the value of rank 1: gob: type object_test.hidden has no exported fields", "object: the value of rank 1: gob", "object: the value of rank 1: gob"},
		},
		"bcast of nothing": {
			func(ctx context.Context, c *planner.Comm) error { return object.Bcast[int](ctx, c, nil, 1) },
			[]string{"the value is nil", "the value is nil", "the value is nil"},
		},
		"one of them": {
			func(ctx context.Context, c *planner.Comm) error {
				var v any = c.Rank()
				if c.Rank() == 2 {
					v = func() {}
				}
				_, err := object.Allgather(ctx, c, v)
				return err
			},
			[]string{"object: the value of rank 2: gob", "object: the value of rank 2: gob", "object: the value of rank 2: gob"},
		},
		"gather": {
			func(ctx context.Context, c *planner.Comm) error {
				_, err := object.Gather(ctx, c, hidden{1}, 2)
				return err
			},
			[]string{"object: the value of rank 0: gob", "object: the value of rank 1: gob", "object: the value of rank 0: gob"},
		},
		"too few to scatter": {
			func(ctx context.Context, c *planner.Comm) error {
				_, err := object.Scatter(ctx, c, []string{"a", "b"}, 0)
				return err
			},
			[]string{"object: the value of rank 0: 2 values, for 3 ranks", "rank 0: 2 values", "rank 0: 2 values"},
		},
		"too few to all": {
			func(ctx context.Context, c *planner.Comm) error {
				_, err := object.Alltoall(ctx, c, []string{"a", "b"})
				return err
			},
			[]string{"2 blocks to send, for 3 ranks", "2 blocks to send", "2 blocks to send"},
		},
		"another type": {
			func(ctx context.Context, c *planner.Comm) error {
				switch c.Rank() {
				case 0:
					return object.Send(ctx, c, 1, 0, "text")
				case 1:
					_, err := object.Recv[int](ctx, c, 0, 0)
					return err
				}
				return object.Send(ctx, c, 1, 0, hidden{1})
			},
			[]string{"", "object: the value of rank 0: gob: decoding into local type *int, received remote type string", "object: the value of rank 2: gob"},
		},
		"no value": {
			func(ctx context.Context, c *planner.Comm) error {
				if c.Rank() != 1 {
					return planner.Send(ctx, c, 1, 0, []byte("a value of 16 b."))
				}
				for _, from := range []int{0, 2} {
					if _, err := object.Recv[int](ctx, c, from, 0); from == 2 || err == nil {
						return err
					}
				}
				return nil
			},
			[]string{"", "what rank 2 has sent with tag 0 is no value", ""},
		},
		"given up": {
			func(ctx context.Context, c *planner.Comm) error {
				if c.Rank() != 1 {
					return nil
				}
				ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				_, err := object.Recv[int](ctx, c, 0, 0)
				return err
			},
			[]string{"", "context deadline exceeded", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := planner.Run(t.Context(), "3", nil, func(ctx context.Context, comm *planner.Comm) error {
				err := c.call(ctx, comm)
				if want := c.want[comm.Rank()]; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					return fmt.Errorf("%v, want %q", err, want)
				}
				all, err := object.Allgather(ctx, comm, comm.Rank()) // it goes on
				return same("allgather", all, []int{0, 1, 2}, err)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
