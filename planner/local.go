package planner

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
)

// Local makes a communicator of goroutine ranks, one Comm for each rank of the
// topology, in the grammar of [levels.Parse]: 4x2 is four nodes of two ranks. Each Comm
// must be closed.
//
// In a bubble of testing/synctest computing takes no time, and an emulated link exactly its own. Ranks that look after SIGQUIT,
// see [Options.DumpOnQuit], can't be in one: the runtime's goroutine for signals would be part of the bubble.
func Local(topology string, o *Options) ([]*Comm, error) {
	t, err := levels.Parse(topology)
	if err != nil {
		return nil, err
	}
	return LocalOn(t, o)
}

// LocalOn is [Local] on a topology.
func LocalOn(t *levels.Topology, o *Options) ([]*Comm, error) {
	if t == nil || t.Depth() == 0 {
		return nil, errNoTopology
	}
	reg, s := all.Submodules(), o.settings()
	t = t.OneProcess()
	p, err := s.policy(t, reg)
	if err != nil {
		return nil, err
	}
	if err := proc.UsableCongestion(s.Congestion); err != nil {
		return nil, err // as between processes
	}
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	w := &world{World: local.NewShaped(t.Size(), config, s.Link)}
	if err := s.observe(w, p.common.Managed, "", t); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	w.open.Store(int32(t.Size()))
	w.register(t)
	comms := make([]*Comm, t.Size())
	for r := range comms {
		comms[r] = newComm(base{w.Endpoint(levels.Rank(r)).Comm(0), t, reg}, w, p.clone())
	}
	for _, c := range comms {
		if err := c.unify(&c.base); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	if p.measures {
		if err := measureAll(comms); err != nil {
			return nil, err
		}
	}
	return comms, nil
}

// measureAll measures the machine with goroutine ranks. If that fails it closes them.
func measureAll(comms []*Comm) error {
	g, ctx := errgroup.WithContext(context.Background()) // its end breaks the calls of all
	for _, c := range comms {
		g.Go(func() error { return c.measureMachine(ctx, &c.base, c.Secured() != "") })
	}
	err := g.Wait()
	if err != nil {
		for _, c := range comms {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}
