package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/env"
)

// examination is one rank's part, and on rank 0 the result.
type examination struct {
	job   *join.Job
	began time.Time
	limit time.Duration // of the measurement

	self       *facts
	world      *executor.World // nil: it could not be made
	all        []*facts        // by rank
	visits     []visit         // rank 0's
	unmeasured int             // pairs
	errors     []string        // that ended the measurement, of all ranks
}

// closeTime bounds the goodbye.
const closeTime = 2 * time.Second

// examine does all parts. All ranks do the same exchanges in the same order, even after a failure
// on one of them.
func (e *examination) examine(ctx context.Context) error {
	e.self.reach(ctx, e.job)
	if _, err := e.job.Exchange(ctx, nil); err != nil { // nobody tries any more
		return err
	}
	var err error
	if e.world, err = proc.New(ctx, e.job, e.job.Rank, e.job.Topology, e.config()); err != nil {
		e.self.Error = err.Error()
	} else {
		e.self.Readable = e.world.Endpoint(e.job.Rank).IsReadable()
	}
	if err := e.gather(ctx); err != nil {
		return err
	}
	for _, f := range e.all {
		if f.Error != "" {
			return nil // without links nothing can be measured
		}
	}
	var said string
	if err := e.measure(ctx); err != nil {
		said = err.Error()
	}
	all, err := e.job.Exchange(ctx, []byte(said[:min(len(said), join.MaxPayload)]))
	for _, text := range all {
		if len(text) > 0 {
			e.errors = append(e.errors, string(text))
		}
	}
	return err
}

// config is that of a managed program without options.
func (e *examination) config() proc.Config {
	return proc.Config{
		Config:     executor.Config{StallAfter: -1, CloseTimeout: closeTime},
		Congestion: os.Getenv(env.Congestion),
		Spread:     true,
	}
}

// gather tells all ranks the facts of all.
func (e *examination) gather(ctx context.Context) error {
	mine, err := json.Marshal(e.self)
	if err != nil {
		return err
	}
	texts, err := e.job.Exchange(ctx, mine)
	if err != nil {
		return err
	}
	e.all = make([]*facts, len(texts))
	for r, text := range texts {
		e.all[r] = &facts{}
		if err := json.Unmarshal(text, e.all[r]); err != nil {
			return fmt.Errorf("facts of rank %d: %w", r, err)
		}
	}
	return nil
}

// measure lets all pairs measure. Only rank 0 has the results.
func (e *examination) measure(ctx context.Context) error {
	v := &visitor{comm: e.world.Endpoint(e.job.Rank).Comm(0)}
	if e.job.Rank > 0 {
		return v.obey(ctx)
	}
	t := e.job.Topology
	// A node has room for as many ranks as its ranks have CPUs.
	room, bound := make([]int, t.Nodes()), map[string]bool{}
	for r, f := range e.all {
		if key := f.Node + " " + f.CPUs; !bound[key] {
			bound[key] = true
			n := &room[t.Node(levels.Rank(r))]
			*n = min(*n+f.CPUCount, f.HostCPUs)
		}
	}
	all := waves(e.job.Size, func(r int) int { return int(t.Node(levels.Rank(r))) }, func(n int) int { return room[n] })
	planned := 0
	for i := range all {
		all[i] = slices.DeleteFunc(all[i], e.isApart)
		planned += len(all[i])
	}
	var err error
	e.visits, err = v.conduct(ctx, all, e.limit)
	e.unmeasured = planned - len(e.visits)
	return err
}

// isApart reports whether one of a pair could not reach the other, or not with all packets.
func (e *examination) isApart(p pair) bool {
	to := func(from, to int) bool {
		return slices.ContainsFunc(e.all[from].Unreached, func(f failure) bool { return f.Rank == to }) ||
			slices.ContainsFunc(e.all[from].Narrow, func(n narrow) bool { return n.Rank == to })
	}
	return to(p.a, p.b) || to(p.b, p.a)
}

// close leaves the job.
func (e *examination) close(ctx context.Context) error {
	if e.world != nil {
		return errors.Join(e.world.Endpoint(e.job.Rank).Close(), e.world.Close())
	}
	ctx, stop := context.WithTimeout(ctx, closeTime)
	defer stop()
	return e.job.Close(ctx)
}
