package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Part is a collective of some of a job's ranks. They are as a machine of their own.
type Part struct {
	Ranks   []levels.Rank
	Request tasks.Request
	Plan    tasks.Plan
}

// Timed is the time of a part.
type Timed struct {
	Timing  measure.Timing
	Refused bool // no submodule lowers the plan
}

// PartMeter measures parts of a job's ranks at one time. Parts have no ranks in common. Every rank
// of the job calls it with the same arguments in the same order, and all get the same results.
type PartMeter interface {
	Parts(ctx context.Context, all []Part, stop stats.Stop) ([]Timed, error)
}

var (
	_ PartMeter = (*SimulatedParts)(nil)
	_ PartMeter = (*RankParts)(nil)
)

// SimulatedParts gives the times of a described machine. One caller stands for all ranks.
type SimulatedParts struct {
	topology *levels.Topology
	machine  *machine.Machine
	registry submodules.Registry
	spent    float64 // ns
}

// NewSimulatedParts returns a meter for parts of the ranks of t on a machine.
func NewSimulatedParts(t *levels.Topology, m *machine.Machine, reg submodules.Registry) *SimulatedParts {
	return &SimulatedParts{topology: t, machine: m, registry: reg}
}

// Spent returns how long all measurements so far would have taken on the machine: those at
// one time as long as the longest of them.
func (s *SimulatedParts) Spent() time.Duration { return time.Duration(s.spent) }

// Beside calls f with 0 to n-1, on several processors.
func (s *SimulatedParts) Beside(n int, f func(i int)) {
	measure.NewSimulated(s.topology, s.machine, s.registry).Beside(n, f)
}

// Parts simulates each part by itself. Parts in different racks share nothing in a simulation.
func (s *SimulatedParts) Parts(ctx context.Context, all []Part, stop stats.Stop) ([]Timed, error) {
	results, errs := make([]Timed, len(all)), make([]error, len(all))
	s.Beside(len(all), func(i int) {
		on, err := s.topology.Sub(all[i].Ranks)
		if err != nil {
			errs[i] = err
			return
		}
		results[i], errs[i] = all[i].measure(ctx, NewSimulatedMeter(on, s.machine, s.registry), stop)
	})
	longest := 0.0
	for _, r := range results {
		longest = max(longest, r.Timing.Spent)
	}
	s.spent += longest
	return results, errors.Join(errs...)
}

// measure times a part on a meter of its ranks.
func (p *Part) measure(ctx context.Context, m Meter, stop stats.Stop) (Timed, error) {
	timing, err := m.Collective(ctx, p.Request, p.Plan, stop)
	if errors.Is(err, submodules.ErrUnsupported) {
		return Timed{Refused: true}, nil
	}
	if err != nil {
		return Timed{}, fmt.Errorf("measure %v with %v: %w", p.Request, p.Plan, err)
	}
	return Timed{Timing: timing}, nil
}

// RankParts is a rank's end of a meter on a communicator. Each part has a communicator of its own.
// It stays for the next time.
type RankParts struct {
	comm   *planner.Comm
	regime costs.Regime
	made   map[string]bool      // parts with communicators, by their ranks
	own    map[string]*rankPart // this rank's ends of parts
}

// rankPart is this rank's end of a part.
type rankPart struct {
	comm  *planner.Comm
	meter Meter
}

// NewRankParts returns a meter of c's ranks, whole collectives in a regime.
func NewRankParts(c *planner.Comm, regime costs.Regime) *RankParts {
	return &RankParts{comm: c, regime: regime, made: map[string]bool{}, own: map[string]*rankPart{}}
}

// Close ends the communicators of parts.
func (r *RankParts) Close() error {
	var errs []error
	for _, p := range r.own {
		errs = append(errs, p.comm.Close())
	}
	clear(r.own)
	return errors.Join(errs...)
}

// Parts measures all parts at one time, each on its ranks. Others wait meanwhile.
func (r *RankParts) Parts(ctx context.Context, all []Part, stop stats.Stop) ([]Timed, error) {
	if err := r.split(ctx, all); err != nil {
		return nil, err
	}
	results := make([]Timed, len(all))
	for i := range all {
		if p := r.own[all[i].key()]; p != nil && all[i].has(r.comm.Rank()) {
			var err error
			if results[i], err = all[i].measure(ctx, p.meter, stop); err != nil {
				return nil, err // the others hear of it
			}
		}
	}
	for i := range all {
		if err := shareJSON(ctx, r.comm, &results[i], int(all[i].Ranks[0])); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// key names a part by its ranks.
func (p *Part) key() string { return fmt.Sprint(p.Ranks) }

// has reports whether a rank is of the part.
func (p *Part) has(rank int) bool { return slices.Contains(p.Ranks, levels.Rank(rank)) }

// split makes communicators for parts without one.
func (r *RankParts) split(ctx context.Context, all []Part) error {
	color, key, fresh := planner.NoColor, "", false
	for i := range all {
		if k := all[i].key(); !r.made[k] {
			r.made[k], fresh = true, true
			if all[i].has(r.comm.Rank()) {
				color, key = i, k
			}
		}
	}
	if !fresh {
		return nil
	}
	comm, err := r.comm.Split(ctx, color, r.comm.Rank())
	if err != nil || comm == nil {
		return err
	}
	meter, err := NewMeter(ctx, comm, r.regime)
	r.own[key] = &rankPart{comm: comm, meter: meter}
	return err
}

// shareJSON copies root's *v to all ranks, as JSON.
func shareJSON(ctx context.Context, c *planner.Comm, v any, root int) error {
	var data []byte
	if c.Rank() == root {
		var err error
		if data, err = json.Marshal(v); err != nil {
			return fmt.Errorf("share a result: %w", err)
		}
	}
	data, err := ShareBytes(ctx, c, data, root)
	if err != nil || c.Rank() == root {
		return err
	}
	return json.Unmarshal(data, v)
}

// ShareBytes returns root's bytes on all ranks; nil: there are none.
func ShareBytes(ctx context.Context, c *planner.Comm, data []byte, root int) ([]byte, error) {
	n := []int64{int64(len(data))}
	if err := planner.Bcast(ctx, c, n, root); err != nil {
		return nil, err
	}
	if n[0] == 0 {
		return nil, nil
	}
	if c.Rank() != root {
		data = make([]byte, n[0])
	}
	return data, planner.Bcast(ctx, c, data, root)
}
