package peers

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/tierflow/tierflow/planner/rules/foreign"
	"github.com/tierflow/tierflow/tasks"
)

// algorithm is one of Open MPI's coll/tuned, with the segment sizes to try. Its number is in the
// table of package foreign.
type algorithm struct {
	name     string
	segments []int
}

var (
	unsegmented = []int{0}
	segmented   = []int{0, 8 << 10, 64 << 10, 256 << 10}
	hanSegments = []int{64 << 10, 256 << 10, 1 << 20}
)

// tunedAlgorithms are those of Open MPI 4.1 worth a try. Pipeline and chain stand for
// the deep trees. Algorithms linear in all bytes are left out, but for scans, which have no
// other, and alltoalls: all of theirs are.
var tunedAlgorithms = map[string][]algorithm{
	"bcast": {
		{"chain", segmented[1:]},
		{"pipeline", segmented[1:]},
		{"split_binary_tree", segmented[1:]},
		{"binary_tree", segmented[1:]},
		{"binomial", segmented},
		{"knomial", segmented},
		{"scatter_allgather", unsegmented},
		{"scatter_allgather_ring", unsegmented},
	},
	"reduce": {
		{"chain", segmented[1:]},
		{"pipeline", segmented[1:]},
		{"binary", segmented[1:]},
		{"binomial", segmented},
		{"rabenseifner", unsegmented},
	},
	"allreduce": {
		{"nonoverlapping", unsegmented},
		{"recursive_doubling", unsegmented},
		{"ring", unsegmented},
		{"segmented_ring", segmented[2:]},
		{"rabenseifner", unsegmented},
	},
	"allgather": {
		{"bruck", unsegmented}, {"recursive_doubling", unsegmented}, {"ring", unsegmented}, {"neighbor", unsegmented},
	},
	"gather":  {{"binomial", unsegmented}, {"linear_sync", unsegmented}},
	"scatter": {{"binomial", unsegmented}, {"linear_nb", unsegmented}},
	"alltoall": {
		{"linear", unsegmented},
		{"pairwise", unsegmented},
		{"modified_bruck", unsegmented},
		{"linear_sync", unsegmented},
		{"two_proc", unsegmented},
	},
	"alltoallv": {{"basic_linear", unsegmented}, {"pairwise", unsegmented}},
	"scan":      {{"linear", unsegmented}, {"recursive_doubling", unsegmented}},
	"exscan":    {{"linear", unsegmented}, {"recursive_doubling", unsegmented}},
	"barrier":   {{"double_ring", unsegmented}, {"recursive_doubling", unsegmented}, {"bruck", unsegmented}, {"tree", unsegmented}},
}

// mpichSwept are MPICH's own algorithms of the collectives with several, except scans and
// alltoalls.
var mpichSwept = map[string][]string{
	"bcast":     {"binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather"},
	"reduce":    {"binomial", "reduce_scatter_gather"},
	"allreduce": {"recursive_doubling", "reduce_scatter_allgather"},
	"allgather": {"brucks", "recursive_doubling", "ring"},
}

// sweepMPICH tries MPICH's algorithms, and records their times.
func sweepMPICH(r *record, c cells, each time.Duration, notes io.Writer, run measurer) error {
	for _, op := range c.ops {
		fmt.Fprintf(notes, "# %s: trying %d algorithms of MPICH\n", op, len(mpichSwept[op]))
		for _, algorithm := range mpichSwept[op] {
			s := forceMPICH(op, algorithm)
			s.plan = planOf(op, foreign.MPICH+"="+algorithm)
			rows, err := run(s, cells{[]string{op}, c.bytes}, each)
			for _, row := range rows {
				err = errors.Join(err, r.add(s, row))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// candidateSettings returns the settings to try for a collective.
func (s site) candidateSettings(op string) []setting {
	var all []setting
	add := func(variant, plan string, mca ...string) {
		all = append(all, setting{library: openMPI, variant: variant, plan: plan, mca: mca})
	}
	if op == tasks.Alltoall.String() && s.counts != "" {
		op = "alltoallv" // as Open MPI calls it
	}
	for _, a := range tunedAlgorithms[op] {
		if a.name == "two_proc" && s.ranks() != 2 {
			continue
		}
		row, _ := foreign.Find(foreign.OpenMPI, op, a.name) // tests go through all
		for _, segment := range a.segments {
			mca := []string{"coll_tuned_use_dynamic_rules", "1", "coll_tuned_" + op + "_algorithm", fmt.Sprint(row.Number)}
			name := "tuned " + a.name
			if segment > 0 {
				mca = append(mca, "coll_tuned_"+op+"_algorithm_segmentsize", fmt.Sprint(segment))
				name += "/" + tasks.FormatBytes(int64(segment))
			}
			add(name, planOf(op, fmt.Sprintf("%s=%d/%d", foreign.OpenMPI, row.Number, segment)), mca...)
		}
	}
	if s.isHierarchical() && slices.Contains([]string{"bcast", "reduce", "allreduce"}, op) {
		for up, upName := range []string{"libnbc", "adapt"} {
			for low, lowName := range []string{"tuned", "sm"} {
				for _, segment := range hanSegments {
					add(fmt.Sprintf("han %s+%s/%s", upName, lowName, tasks.FormatBytes(int64(segment))), "",
						"coll_han_priority", "100",
						"coll_han_"+op+"_up_module", fmt.Sprint(up), "coll_han_"+op+"_low_module", fmt.Sprint(low),
						"coll_han_"+op+"_segsize", fmt.Sprint(segment))
				}
			}
		}
	}
	return all
}

// measurer runs a setting's job once. It notes a failure of the job by itself; its error ends
// everything.
type measurer func(s setting, c cells, each time.Duration) ([]peerRow, error)

// bestForced sweeps each collective and returns the best settings of Open MPI, each
// for the cells it won. Each row of the first turns is recorded.
func (s site) bestForced(c cells, each time.Duration, notes io.Writer, run measurer, record func(s setting, row peerRow) error) ([]setting, error) {
	var won []setting
	for _, op := range c.ops {
		settings := s.candidateSettings(op)
		fmt.Fprintf(notes, "# %s: trying %d settings of Open MPI\n", op, len(settings))
		best := map[int64]setting{}
		p50 := map[int64]float64{}
		try := func(f setting, sizes []int64, first bool) error {
			rows, err := run(f, cells{[]string{op}, sizes}, each)
			for _, row := range rows {
				if first {
					err = errors.Join(err, record(f, row))
				}
				if before, ok := p50[row.Bytes]; !ok || row.P50 < before {
					best[row.Bytes], p50[row.Bytes] = f, row.P50
				}
			}
			return err
		}
		// Spinning ranks would keep the others from too few processors.
		yields := !s.spin || s.ranks() > runtime.NumCPU()
		for _, f := range settings {
			if err := try(f.withYield(yields), c.bytes, true); err != nil {
				return nil, err
			}
		}
		for _, f := range settings {
			if sizes := sizesWonBy(f.withYield(yields), best); s.spin && len(sizes) > 0 {
				if err := try(f.withYield(!yields), sizes, false); err != nil {
					return nil, err
				}
			}
		}
		for _, f := range settings {
			for _, y := range []bool{true, false} {
				if sizes := sizesWonBy(f.withYield(y), best); len(sizes) > 0 {
					f := f.withYield(y)
					f.variant = "forced: " + f.variant
					f.only = &cells{[]string{op}, sizes}
					won = append(won, f)
				}
			}
		}
	}
	return won, nil
}

// withYield returns the setting with yielding or spinning ranks.
func (s setting) withYield(yields bool) setting {
	s.variant += ", " + yieldName(yields)
	s.mca = slices.Concat(s.mca, yielding[yields])
	return s
}

// sizesWonBy returns the sizes with a setting as the best, in order.
func sizesWonBy(s setting, best map[int64]setting) []int64 {
	var sizes []int64
	for n, b := range best {
		if b.variant == s.variant {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	return sizes
}
