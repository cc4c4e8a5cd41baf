package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/derived"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Times of the experiments for γ.
const (
	gammaCalls = 16 // of a bcast, timed together
	gammaWarm  = 4  // before them: an idle wire may let a burst pass

	leastPart = 0.1 // of a bcast with a barrier, the bcast's at least
)

// Gamma measures how long linear bcasts of bytes take, ns: times[i] is that from rank 0 to i+1
// others, up to most ranks in all. They are leaders of domains at the outermost level. Each sample
// is some calls separated by barriers, timed on rank 0, less as many barriers (Nuriyev,
// Lastovetsky, section 4.1). See [derived.NewGamma].
func (b *Bench) Gamma(ctx context.Context, most int, bytes int64, stop stats.Stop) (times []float64, err error) {
	ranks := outermost(b.topology, most)
	for q := 2; q <= len(ranks); q++ {
		ns, err := b.timeLinear(ctx, ranks[:q], bytes, stop)
		if err != nil {
			return nil, fmt.Errorf("measure γ(%d): %w", q, err)
		}
		if err := b.shareJSON(ctx, &ns); err != nil {
			return nil, err
		}
		times = append(times, ns/gammaCalls)
	}
	return times, nil
}

// timeLinear returns on rank 0 how long the calls of a sample take without their barriers, ns.
func (b *Bench) timeLinear(ctx context.Context, ranks []levels.Rank, bytes int64, stop stats.Stop) (float64, error) {
	barrier, err := b.bindScript(barrierOf(ranks))
	if err != nil {
		return 0, err
	}
	linear, err := b.bindScript(linearOf(ranks, bytes, b.registry))
	if err != nil {
		return 0, err
	}
	all, err := b.repeatInTurns(ctx, stop, series(linear, barrier), series(barrier, barrier))
	if err != nil || b.Rank() > 0 {
		return 0, err
	}
	both, barriers := costs.Median(all[0].column(0, 0)), costs.Median(all[1].column(0, 0))
	return max(both-barriers, both*leastPart), nil
}

// series is the subject of some calls of two programs in turns. If both are the same program, it is
// called once each time.
func series(x, barrier *bound) subject {
	return func(ctx context.Context) ([]float64, error) {
		var begin time.Time
		for i := range gammaWarm + gammaCalls {
			if i == gammaWarm {
				begin = time.Now()
			}
			for _, one := range slices.Compact([]*bound{x, barrier}) {
				if err := one.run.Do(ctx); err != nil {
					return nil, err
				}
			}
		}
		return []float64{float64(time.Since(begin))}, nil
	}
}

// outermost returns up to most leaders of domains, at the outermost level with several.
func outermost(t *levels.Topology, most int) []levels.Rank {
	h := t.Hierarchy(0)
	for k := h.Depth() - 1; k > 0; k-- {
		if all := h.Groups(k)[0].Ranks; len(all) > 1 {
			return all[:min(most, len(all))]
		}
	}
	all := h.Groups(0)[0].Ranks
	return all[:min(most, len(all))]
}

// linearOf returns a linear bcast from the first one of some ranks to the others.
func linearOf(ranks []levels.Rank, bytes int64, reg submodules.Registry) *script {
	return &script{name: fmt.Sprintf("linear %d×%d", len(ranks), bytes), bytes: bytes, emit: func(e *submodules.Emitter, c *submodules.Call) {
		sub, me := *c, slices.Index(ranks, c.Group.Ranks[c.Me])
		if me < 0 {
			return
		}
		sub.Group = &levels.Group{Ranks: ranks}
		sub.Me, sub.Algorithm = me, submodules.Linear
		if s, err := reg.Find(submodules.NBC); err == nil {
			_ = s.Lower(e, &sub) // nbc has a linear bcast
		}
	}}
}

// barrierOf returns a barrier of some ranks: each tells the first one, and that tells all.
func barrierOf(ranks []levels.Rank) *script {
	return &script{name: fmt.Sprintf("barrier of %d", len(ranks)), bytes: 1, emit: func(e *submodules.Emitter, c *submodules.Call) {
		me, nothing := slices.Index(ranks, c.Group.Ranks[c.Me]), c.Dst.Cut(0, 0)
		switch {
		case me < 0:
		case me > 0:
			e.Recv(ranks[0], nothing, e.Send(ranks[0], nothing))
		default:
			var all []dag.ID
			for _, r := range ranks[1:] {
				all = append(all, e.Recv(r, nothing))
			}
			here := e.Join(all...)
			for _, r := range ranks[1:] {
				e.Send(r, nothing, here)
			}
		}
	}}
}

// Followed times a request and a linear gather of so many bytes from each rank after it, on rank 0,
// until both have ended: ns (section 4.2). See [derived.Experiment].
func (b *Bench) Followed(ctx context.Context, r tasks.Request, p tasks.Plan, gathered int64, stop stats.Stop) (s costs.Summary, err error) {
	first, err := b.compileRequest(r, p)
	if err != nil {
		return s, fmt.Errorf("measure: %w", err)
	}
	one, err := b.bindBuffers(r, first)
	if err != nil {
		return s, fmt.Errorf("measure: %w", err)
	}
	gather, err := b.bindScript(gatherOf(everyRank(b.topology), gathered))
	if err != nil {
		return s, fmt.Errorf("measure: %w", err)
	}
	all, err := b.repeatInTurns(ctx, stop, func(ctx context.Context) ([]float64, error) {
		begin := time.Now()
		if err := one.run.Do(ctx); err != nil {
			return nil, err
		}
		err := gather.run.Do(ctx)
		return []float64{float64(time.Since(begin))}, err
	})
	if err != nil {
		return s, fmt.Errorf("measure %v and a gather: %w", r, err)
	}
	if b.Rank() == 0 {
		s = stats.Summarize(all[0].column(0, 0))
	}
	return s, b.shareJSON(ctx, &s)
}

// Gather times that gather alone, on rank 0, ns: from one rank, and from all.
func (b *Bench) Gather(ctx context.Context, gathered int64, stop stats.Stop) (derived.Gather, error) {
	return gatherBy(ctx, b, b.topology, gathered, stop)
}

// Gather is [Bench.Gather] on simulated time.
func (s *Simulated) Gather(ctx context.Context, gathered int64, stop stats.Stop) (derived.Gather, error) {
	return gatherBy(ctx, s, s.topology, gathered, stop)
}

func gatherBy(ctx context.Context, c stopwatch, t *levels.Topology, gathered int64, stop stats.Stop) (g derived.Gather, err error) {
	every := everyRank(t)
	if len(every) < 2 {
		return g, nil
	}
	all, err := c.times(ctx, stop, gatherOf(every[:2], gathered), gatherOf(every, gathered))
	if err != nil {
		return g, fmt.Errorf("measure a gather: %w", err)
	}
	g.First = all[0].Ranks[0].P50
	if len(every) > 2 {
		g.Next = max(0, all[1].Ranks[0].P50-g.First) / float64(len(every)-2)
	}
	return g, nil
}

// everyRank lists the ranks of a topology.
func everyRank(t *levels.Topology) []levels.Rank {
	all := make([]levels.Rank, t.Size())
	for i := range all {
		all[i] = levels.Rank(i)
	}
	return all
}

// gatherOf returns a linear gather without synchronization to the first one of some ranks.
func gatherOf(ranks []levels.Rank, bytes int64) *script {
	return &script{name: fmt.Sprintf("gather %d×%d", len(ranks), bytes), bytes: max(1, bytes), emit: func(e *submodules.Emitter, c *submodules.Call) {
		me, part := slices.Index(ranks, c.Group.Ranks[c.Me]), c.Dst.Cut(0, bytes)
		switch {
		case me > 0:
			e.Send(ranks[0], part)
		case me == 0:
			for _, r := range ranks[1:] {
				e.Recv(r, part)
			}
		}
	}}
}

// Gamma is [Bench.Gamma] on simulated time. A bcast's time is until its last rank has ended, so
// there is no barrier.
func (s *Simulated) Gamma(ctx context.Context, most int, bytes int64, _ stats.Stop) (times []float64, err error) {
	ranks := outermost(s.topology, most)
	for q := 2; q <= len(ranks); q++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := linearOf(ranks[:q], bytes, s.registry).simulateOn(s.topology, s.machine, sim.Options{})
		if err != nil {
			return nil, fmt.Errorf("simulate γ(%d): %w", q, err)
		}
		times = append(times, r.Time.Nanoseconds())
	}
	return times, nil
}

// Followed is [Bench.Followed] on simulated time.
func (s *Simulated) Followed(ctx context.Context, r tasks.Request, p tasks.Plan, gathered int64, _ stats.Stop) (costs.Summary, error) {
	check := func(int64) error { return ctx.Err() }
	first, err := s.compilation(ctx, r, p).Job()
	if err != nil {
		return costs.Summary{}, err
	}
	ended, err := first.Run(s.machine, sim.Options{Check: check})
	if err != nil {
		return costs.Summary{}, err
	}
	both, err := gatherOf(everyRank(s.topology), gathered).simulateOn(s.topology, s.machine, sim.Options{Start: ended.End, Check: check})
	if err != nil {
		return costs.Summary{}, err
	}
	return stats.Summarize([]float64{both.End[0].Nanoseconds()}), nil
}
