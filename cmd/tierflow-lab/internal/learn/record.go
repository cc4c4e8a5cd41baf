package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// simulatedSamples is the least number of calls of a measurement, uncounted ones included.
const simulatedSamples = 7

// recorder records a set on a simulated machine.
type recorder struct {
	registry  submodules.Registry
	simulated kit.Simulated
	coll      tasks.Collective
	sizes     []int64
	all       bool // plans are the catalogue's, on the whole machine; else MPICH's, on its parts
	most      int  // plans of the catalogue, drawn; 0: all
	seed      uint64
	stderr    io.Writer
}

// mpichPlans are MPICH's own algorithms, as plans.
var mpichPlans = map[tasks.Collective][]string{
	tasks.Bcast: {
		"shape=flat,fs=all,w=1,ib=nbc/binomial", "shape=flat-sag,fs=all,w=1,is=nbc/binomial,iag=nbc/recdoubling",
		"shape=flat-sag,fs=all,w=1,is=nbc/binomial,iag=nbc/ring",
	},
	tasks.Allgather: {
		"shape=flat,fs=all,w=1,iag=nbc/recdoubling", "shape=flat,fs=all,w=1,iag=nbc/bruck", "shape=flat,fs=all,w=1,iag=nbc/ring",
	},
	tasks.Allreduce: {"shape=flat-ar,fs=all,w=1,iar=nbc/recdoubling", "shape=flat-ar,fs=all,w=1,iar=nbc/rabenseifner"},
	tasks.Reduce:    {"shape=flat,fs=all,w=1,ir=nbc/binomial", "shape=flat,fs=all,w=1,ir=nbc/rabenseifner"},
}

// record measures everything.
func (r *recorder) record(ctx context.Context) (*recordedSet, error) {
	s := &recordedSet{Version: setVersion, Collective: r.coll.String(), On: r.simulated.MachineName(), Machine: r.simulated.Machine, Samples: simulatedSamples}
	whole, sizes := r.simulated.Topology(), r.withOdd()
	machines := []*levels.Topology{whole}
	if r.all {
		s.Plans = r.catalogue(whole, sizes)
	} else {
		if s.Plans = mpichPlans[r.coll]; s.Plans == nil {
			return nil, kit.Usagef("--op %v: MPICH's plans are known of bcast, reduce, allreduce and allgather", r.coll)
		}
		var err error
		if machines, err = parts(whole); err != nil {
			return nil, err
		}
	}
	bar := kit.NewProgress(r.stderr, "recording "+r.coll.String(), "")
	defer bar.Finish()
	for m, on := range machines {
		meter := tune.NewSimulatedMeter(on, r.simulated.Machine, r.registry)
		for i, n := range sizes {
			bar.Show(int64(m*len(sizes)+i), int64(len(machines)*len(sizes)))
			row := setRow{Nodes: on.Nodes(), PerNode: on.Size() / on.Nodes(), Bytes: n, NS: make([]float64, len(s.Plans))}
			if err := r.row(ctx, meter, on, s.Plans, &row); err != nil {
				return nil, err
			}
			s.Points = append(s.Points, row)
		}
	}
	if r.all {
		if err := r.methods(ctx, s, whole, sizes); err != nil {
			return nil, err
		}
	}
	return s, s.check("recorded")
}

// row measures all plans for a row's request. Unsupported ones keep 0.
func (r *recorder) row(ctx context.Context, meter tune.Meter, on *levels.Topology, plans []string, row *setRow) error {
	ask := labkit.Request(r.coll, row.Bytes)
	space := tune.Space{Registry: r.registry}
	var served []string
	if r.all {
		served = kit.Names(space.Plans(ask, on))
	}
	errs := make([]error, len(plans))
	meter.(interface{ Beside(int, func(int)) }).Beside(len(plans), func(k int) {
		p, err := tasks.ParsePlan(plans[k])
		if err != nil || r.all && !slices.Contains(served, plans[k]) {
			errs[k] = err
			return
		}
		t, err := meter.Collective(ctx, ask, p, stats.Stop{})
		switch {
		case errors.Is(err, submodules.ErrUnsupported):
		case err != nil:
			errs[k] = fmt.Errorf("%v on %v by %v: %w", ask, on, p, err)
		default:
			row.NS[k] = roundDigits(t.Slowest.P50)
		}
	})
	return errors.Join(errs...)
}

// roundDigits keeps four digits, more than a measurement has.
func roundDigits(ns float64) float64 {
	if ns <= 0 {
		return 0
	}
	digit := math.Pow(10, math.Floor(math.Log10(ns))-3)
	return math.Round(math.Round(ns/digit)*digit*1e3) / 1e3
}

// catalogue lists the plans of all sizes, or some of them.
func (r *recorder) catalogue(on *levels.Topology, sizes []int64) (all []string) {
	for _, n := range sizes {
		all = append(all, kit.Names((tune.Space{Registry: r.registry}).Plans(labkit.Request(r.coll, n), on))...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if r.most > 0 && r.most < len(all) {
		rng := rand.New(rand.NewPCG(r.seed, 5))
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:r.most]
		slices.Sort(all)
	}
	return all
}

// methods lets the searches of package tune search the same machine and sizes.
func (r *recorder) methods(ctx context.Context, s *recordedSet, on *levels.Topology, sizes []int64) error {
	var requests []tasks.Request
	for _, n := range sizes {
		requests = append(requests, labkit.Request(r.coll, n))
	}
	for _, m := range []*tune.Method{tune.Tasks, tune.TasksPruned} {
		meter := tune.NewSimulatedMeter(on, r.simulated.Machine, r.registry)
		search := tune.Search{Topology: on, Requests: requests, Space: tune.Space{Registry: r.registry}, Method: m}
		made, err := search.Run(ctx, meter)
		if err != nil {
			return err
		}
		o := methodOutcome{Method: m.String(), Seconds: meter.(interface{ Spent() time.Duration }).Spent().Seconds()}
		for i, row := range s.Points {
			ns := math.Inf(1)
			for _, e := range made.Entries {
				if e.Bytes != row.Bytes || len(e.Candidates) == 0 {
					continue
				}
				t, err := meter.Collective(ctx, requests[i], e.Candidates[0].Parsed, stats.Stop{})
				if err != nil {
					return err
				}
				ns = roundDigits(t.Slowest.P50)
			}
			o.NS = append(o.NS, ns)
		}
		s.Methods = append(s.Methods, o)
	}
	return nil
}

// parts lists machines of powers of two of a machine's nodes and ranks a node.
func parts(whole *levels.Topology) (all []*levels.Topology, err error) {
	for nodes := 1; nodes <= whole.Nodes(); nodes *= 2 {
		for ranks := 1; ranks <= whole.Size()/whole.Nodes(); ranks *= 2 {
			if nodes*ranks == 1 {
				continue
			}
			on, err := levels.Parse(fmt.Sprintf("%dx%d", nodes, ranks))
			if err != nil {
				return nil, err
			}
			all = append(all, on)
		}
	}
	return all, nil
}

// withOdd adds drawn sizes between: one for four.
func (r *recorder) withOdd() []int64 {
	rng := rand.New(rand.NewPCG(r.seed, 3))
	all := slices.Clone(r.sizes)
	for k := range len(r.sizes) / 4 {
		n := r.sizes[4*k+rng.IntN(4)]
		if odd := n*3/4 + rng.Int64N(max(n*3/4/4, 1))*4; odd&(odd-1) != 0 && odd > r.sizes[0] {
			all = append(all, odd)
		}
	}
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}
