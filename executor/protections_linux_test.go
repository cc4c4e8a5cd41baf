package executor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// A rank reads the memory of one that has left the call and uses it for something
// else: it must not take what it has read for a result.
func TestTornCopy(t *testing.T) {
	const n = 100_000
	for _, where := range []string{"shared memory", "the process"} {
		t.Run(where, func(t *testing.T) {
			h, plan := parse(t, "1x2", "shape=han,fs=all,w=1,s=solo")
			p := openProcesses(t, h, proc.Config{}, nil)
			defer executor.Disturb(p.World, faulty.Faults{}).Wait()
			bufs := [][]byte{message(4*n, 1), make([]byte, 4*n)}
			if where == "shared memory" {
				shared, free, err := p.Endpoint(0).Alloc(4 * n)
				if err != nil {
					t.Fatal(err)
				}
				defer free()
				copy(shared, bufs[0])
				bufs[0] = shared
			}
			runs := job{p.World, h, tasks.Request{Coll: tasks.Bcast, Count: n, Type: tasks.Int32}, plan}.bind(t, nil, bufs)
			owner, giveUp := context.WithCancelCause(t.Context())
			left := make(chan bool)
			var once sync.Once
			executor.Touched(p.World, 1, func(levels.Rank) {
				once.Do(func() {
					giveUp(errEnough)
					<-left
				})
			})
			errs := ranks(t, p.World, func(ctx context.Context, r int) error {
				if r == 1 {
					return runs[1].Do(ctx)
				}
				defer close(left)
				err := runs[0].Do(owner)
				clear(bufs[0])
				return err
			})
			if !errors.Is(errs[0], errEnough) {
				t.Errorf("the owner: %v, want %v", errs[0], errEnough)
			}
			if !names(errs[1], 0) {
				t.Errorf("the reader: %v, want a PeerError of rank 0", errs[1])
			}
			closeProcesses(t, p)
		})
	}
}

// Of what a call sends to a rank of another node the first 64 KiB go without credit,
// none of it if small messages are bounded, and of what it sends to a neighbour only
// those.
func TestLead(t *testing.T) {
	for _, test := range []struct {
		topo          string
		bytes         int
		segment       string
		config        executor.Config
		eager, direct int64
	}{
		{"2x1", 64 << 10, "all", executor.Config{}, 1, 0},
		{"2x1", 64<<10 + 4, "all", executor.Config{}, 0, 1},
		{"2x1", 120 << 10, "30KiB", executor.Config{}, 2, 2},
		{"2x1", 120 << 10, "30KiB", executor.Config{EagerMax: 4 << 10}, 0, 4},
		{"1x2", 120 << 10, "30KiB", executor.Config{}, 0, 4},
	} {
		h, plan := parse(t, test.topo, "shape=flat,i=adapt/chain,w=8,fs="+test.segment)
		p := openProcesses(t, h, proc.Config{Config: test.config}, nil)
		bufs := numbers(2, test.bytes/4)
		want := bufs[0]
		runs := job{p.World, h, tasks.Request{Coll: tasks.Bcast, Count: int64(test.bytes / 4), Type: tasks.Int32}, plan}.bind(t, nil, raws(bufs))
		do(t, p.World, runs)
		check(t, 1, bufs[1], want)
		if c := p.Endpoint(0).Comm(0).Counters(); c.Eager != test.eager || c.Direct != test.direct {
			t.Errorf("%+v: %d messages without credit, %d with; want %d and %d", test, c.Eager, c.Direct, test.eager, test.direct)
		}
		closeProcesses(t, p)
	}
}

// Many ranks that send to one at the same time share what goes without credit.
func TestLeadIsShared(t *testing.T) {
	for _, test := range []struct {
		topo          string
		block         int64
		eager, direct int64
	}{
		{"17x1", 64 << 10, 16, 0},
		{"18x1", 64 << 10, 0, 17},
		{"18x1", 60 << 10, 17, 0},
	} {
		h, plan := parse(t, test.topo, "shape=flat,i=adapt/linear,w=1,fs=all")
		p := openProcesses(t, h, proc.Config{}, nil)
		bufs := numbers(h.Size(), int(test.block)/4*h.Size())
		r := tasks.Request{Coll: tasks.Alltoall, Count: test.block / 4, Type: tasks.Int32, InPlace: true}
		do(t, p.World, job{p.World, h, r, plan}.bind(t, nil, raws(bufs)))
		if c := p.Endpoint(0).Comm(0).Counters(); c.Eager != test.eager || c.Direct != test.direct {
			t.Errorf("%+v: %d messages without credit, %d with; want %d and %d", test, c.Eager, c.Direct, test.eager, test.direct)
		}
		closeProcesses(t, p)
	}
}

// A call fails before what it sent without credit has left: its caller may use the
// buffer for something else, which another rank must not take for the message.
func TestFailedCallSendsWhatItMeant(t *testing.T) {
	h, plan := parse(t, "3x1", "shape=flat,fs=all,w=1,i=adapt/chain")
	p := openProcesses(t, h, proc.Config{}, nil)
	hear := p.Deafen(1) // it doesn't know that rank 2 has left
	defer hear()
	bufs := numbers(3, 10_000)
	want := numbers(3, 10_000)[0]
	runs := job{p.World, h, tasks.Request{Coll: tasks.Bcast, Count: 10_000, Type: tasks.Int32}, plan}.bind(t, nil, raws(bufs))
	reused := make(chan bool)
	errs := ranks(t, p.World, func(ctx context.Context, r int) error {
		switch r {
		case 2:
			return p.Endpoint(2).Comm(0).Close()
		case 1:
			<-reused
			return runs[1].Do(ctx)
		}
		defer close(reused)
		if _, err := recv(ctx, p.World, 0, 2, 0, nil); !names(err, 2) {
			return fmt.Errorf("receive from a rank that leaves: %w", err)
		}
		err := runs[0].Do(ctx) // there is no connection to rank 1 yet
		for i := range bufs[0] {
			bufs[0][i] = spoiled
		}
		return err
	})
	if !names(errs[0], 2) || errs[2] != nil {
		t.Errorf("rank 0: %v, want a PeerError of rank 2, which says %v", errs[0], errs[2])
	}
	if errs[1] == nil {
		check(t, 1, bufs[1], want)
	} else if !names(errs[1], 2) {
		t.Errorf("rank 1: %v, want a PeerError of rank 2 or a right result", errs[1])
	}
	hear()
	closeProcesses(t, p)
}

// A world may close while a call is bound: the race detector sees what isn't guarded.
func TestBindDuringClose(t *testing.T) {
	h, plan := parse(t, "2x2", "shape=han,fs=1KiB,w=2,s=sm,i=adapt/chain")
	p := openProcesses(t, h, proc.Config{}, nil)
	b, err := job{p.World, h, tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32}, plan}.compile(0)
	if err != nil {
		t.Fatal(err)
	}
	bound, ended := make(chan bool), make(chan error)
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			if _, err := p.Endpoint(0).Comm(0).Bind(b); err != nil {
				ended <- err
				return
			}
			if i == 0 {
				close(bound)
			}
		}
	}()
	<-bound
	closeProcesses(t, p)
	if err := <-ended; !errors.Is(err, executor.ErrClosed) {
		t.Errorf("bind after Close: %v, want %v", err, executor.ErrClosed)
	}
}
