package tune_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/submoduletest"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

var someSizes = []int64{64, 4 << 10, 48 << 10, 256 << 10, 1 << 20, 4 << 20}

// newSearch is one over a small space on a topology.
func newSearch(t testing.TB, topo string, m *tune.Method, colls string) (*tune.Search, *fakeMeter) {
	t.Helper()
	on := tasktest.Topology(t, topo)
	return &tune.Search{
		Topology: on, Requests: tasktest.Requests(colls, someSizes...), Method: m,
		Space: tune.Space{
			Registry: all.Submodules(), Submodules: []string{"adapt", "sm"},
			Segments: []int64{64 << 10, 256 << 10, tasks.Whole}, Windows: []int{2}, Inners: []int64{0},
			Numbers: []int{0},
		},
	}, &fakeMeter{on: on}
}

// All methods find plans as good as exhaustive search does where the costs of tasks
// tell all there is, and the cheaper ones measure less.
func TestMethods(t *testing.T) {
	alone(t)
	made := map[*tune.Method]int{}
	for _, m := range tune.Searches() {
		s, f := newSearch(t, "4x2", m, "bcast,allreduce,barrier")
		tuned, err := s.Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		made[m] = f.collectives + f.units
		if m == tune.Tasks && f.units == 0 {
			t.Errorf("%v measures no tasks by themselves", m)
		}
		if len(tuned.Entries) != len(s.Requests) {
			t.Errorf("%v: %d entries for %d requests", m, len(tuned.Entries), len(s.Requests))
		}
		for i := range tuned.Entries {
			checkChoice(t, m, s, f, &tuned.Entries[i])
		}
		tabletest.RoundTrip(t, tuned)
	}
	if !(made[tune.TasksPruned] < made[tune.Tasks] && 4*made[tune.Tasks] < made[tune.Exhaustive] &&
		made[tune.ExhaustivePruned] < made[tune.Exhaustive] && 6*made[tune.TasksPruned] < made[tune.Exhaustive]) {
		t.Errorf("measurements by method: %v", made)
	}
}

// checkChoice compares an entry's choice with the best plan of the whole space.
func checkChoice(t *testing.T, m *tune.Method, s *tune.Search, f *fakeMeter, e *table.Entry) {
	t.Helper()
	var r tasks.Request
	for _, r = range s.Requests {
		if r.Coll.String() == e.Collective && r.Bytes() == e.Bytes {
			break
		}
	}
	space := s.Space
	space.Heuristics = m == tune.ExhaustivePruned || m == tune.TasksPruned
	best := ""
	for _, p := range space.Plans(r, s.Topology) {
		if b, err := tasks.ParsePlan(best); err != nil || best == "" || f.time(r, p) < f.time(r, b) {
			best = p.String()
		}
	}
	chosen := tasktest.Plan(t, e.Candidates[0].Plan)
	b, _ := tasks.ParsePlan(best)
	if took, least := f.time(r, chosen), f.time(r, b); took > 1.02*least {
		t.Errorf("%v chooses %v for %v, which takes %.0f ns; %v takes %.0f", m, chosen, r, took, b, least)
	}
}

// An interrupted search goes on where it was, and comes to the same table.
func TestResume(t *testing.T) {
	alone(t)
	for _, m := range tune.Searches() {
		whole, f := newSearch(t, "2x2", m, "bcast,reduce")
		want, err := whole.Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		s, f := newSearch(t, "2x2", m, "bcast,reduce")
		asked, saved := 0, 0
		s.Interrupted = func(context.Context) (bool, error) { asked++; return asked > len(s.Requests)+40, nil } // for each request while they are listed
		s.Save = func(*table.Table) error { saved++; return nil }
		part, err := s.Run(t.Context(), f)
		if !errors.Is(err, tune.ErrInterrupted) {
			t.Fatalf("%v: %v", m, err)
		}
		if len(part.Entries) == 0 {
			t.Errorf("%v: nothing is known after 40 measurements", m)
		}
		for _, e := range part.Entries {
			r := tasktest.Requests(e.Collective, e.Bytes)[0]
			if rule := s.Space.Rule(r, s.Topology); !slices.ContainsFunc(e.Candidates, func(c table.Candidate) bool { return c.Parsed.Equal(rule) }) {
				t.Errorf("%v: the entry of %v has no time of the rule's plan %v", m, r, rule)
			}
		}
		more, f := newSearch(t, "2x2", m, "bcast,reduce")
		more.Table, _ = tabletest.RoundTrip(t, part)
		planned, _, err := more.Planned(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, err := more.Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		done, made := got.Provenance.Configurations, want.Provenance.Configurations
		if planned == 0 || planned > done || m == tune.Exhaustive && planned != done || done+40 != made {
			t.Errorf("%v: %d measurements after 40 of %d, planned were %d", m, done, made, planned)
		}
		if diff := cmp.Diff(choices(want), choices(got)); diff != "" {
			t.Errorf("%v: the resumed search chooses otherwise: %s", m, diff)
		}
	}
}

// A plan that a submodule won't lower is passed over; any other failure ends the
// search.
func TestSearchErrors(t *testing.T) {
	s, f := newSearch(t, "2x2", tune.Exhaustive, "bcast")
	f.err = submodules.ErrUnsupported
	tuned, err := s.Run(t.Context(), f)
	if err != nil || len(tuned.Entries) != len(someSizes) || len(tuned.Measured) == f.collectives {
		t.Errorf("%v: %d entries, %d measurements of %d tried", err, len(tuned.Entries), len(tuned.Measured), f.collectives)
	}
	s, f = newSearch(t, "2x2", tune.Exhaustive, "bcast")
	f.err = planner.ErrBroken
	if _, err := s.Run(t.Context(), f); !errors.Is(err, planner.ErrBroken) || !strings.Contains(err.Error(), "chain") {
		t.Errorf("a broken communicator gives %v", err)
	}
}

func choices(t *table.Table) (all []string) {
	for _, e := range t.Entries {
		all = append(all, fmt.Sprintf("%s %v %d: %s %.3f", e.Collective, e.Levels, e.Bytes, e.Candidates[0].Plan, e.Candidates[0].NS))
	}
	return all
}

// The space holds only what can be compiled, and says what it leaves out.
func TestSpace(t *testing.T) {
	s, _ := newSearch(t, "3x2", tune.Exhaustive, "allgather")
	for _, coll := range tasks.Requestable() {
		r := tasktest.Requests(coll.String(), 128<<10)[0]
		space := s.Space
		space.Submodules = nil
		configurations := space.Configurations(r, s.Topology)
		seen := map[string]bool{}
		for _, c := range configurations {
			if seen[c.Plan.String()] {
				t.Errorf("%v: %v is there twice", coll, c.Plan)
			}
			seen[c.Plan.String()] = true
		}
		if coll == tasks.Allgather && tune.Rejections(configurations)["not supported"] == 0 {
			t.Error("allgather: recursive doubling among 3 nodes is not rejected")
		}
		plans := space.Plans(r, s.Topology)
		space.Heuristics = true
		if pruned := space.Plans(r, s.Topology); len(pruned) == 0 || len(pruned) >= len(plans) {
			t.Errorf("%v: %d plans, %d with heuristics", coll, len(plans), len(pruned))
		}
		for i := 0; i < len(plans); i += 17 {
			submoduletest.Compile(t, r, s.Topology, plans[i], all.Submodules())
		}
	}
	space := tune.Space{Registry: all.Submodules(), Plan: tasks.Plan{Shape: tasks.Flat}.Set("i", tasks.Choice{Submodule: "adapt", Algorithm: "chain"})}
	for _, p := range space.Plans(tasktest.Requests("bcast", 1<<20)[0], s.Topology) {
		if c, _ := p.Choice("i"); p.Shape != tasks.Flat || c.Algorithm != "chain" {
			t.Errorf("a forced flat chain leaves %v", p)
		}
	}
}

// What is pruned, and why, is counted.
func TestHeuristics(t *testing.T) {
	on := tasktest.Topology(t, "6x20")
	s := tune.Space{Registry: all.Submodules(), Segments: []int64{4 << 10, 1 << 20, tasks.Whole}, Heuristics: true}
	for bytes, reasons := range map[int64][]string{
		8 << 10:  {"message too small to cut", "segment too small for solo", "too few pieces to fill a chain", "messages inside a node"},
		4 << 20:  {"group too large for messages to each", "too few pieces to fill a chain"},
		16 << 20: {"segment too small for solo"},
	} {
		r := tasktest.Requests("allreduce", bytes)[0]
		configurations := s.Configurations(r, on)
		counts := tune.Rejections(configurations)
		sum := len(s.Plans(r, on))
		for _, n := range counts {
			sum += n
		}
		if sum != len(configurations) {
			t.Errorf("%v: %d configurations, but with the rejected ones %d", r, len(configurations), sum)
		}
		for _, reason := range reasons {
			if counts["pruned, "+reason] == 0 {
				t.Errorf("%v: none is pruned as %q: %s", r, reason, tune.RejectionText(counts))
			}
		}
	}
}

// Exchanges of one level fill the wires both ways, so cutting them is left out; what other
// levels or trees overlap with is not. Small shards are.
func TestHeuristicsCutWhatOverlaps(t *testing.T) {
	on := tasktest.Topology(t, "6x20")
	s := tune.Space{Registry: all.Submodules()}
	for _, c := range []struct {
		coll, plan, why string
	}{
		{"allgather", "shape=flat,fs=64KiB,w=2,iag=adapt/ring", "pruned, cut for exchanges of one level"},
		{"allgather", "shape=flat,fs=all,w=1,iag=adapt/ring", ""},
		{"allgather", "shape=han,fs=64KiB,w=2,iag=adapt/ring,sb=sm/slots,sg=sm/slots", ""},
		{"allreduce", "shape=flat-rsag,fs=1MiB,w=2,iag=adapt/ring,irs=adapt/ring", "pruned, cut for exchanges of one level"},
		{"allreduce", "shape=flat,fs=64KiB,w=2,ib=adapt/binomial,ir=adapt/binomial", ""},
		{"allreduce", "shape=lanes,fs=10KiB,w=2,iar=nbc/recdoubling,sag=sm/slots,srs=sm/slots", "pruned, segment too small for shards: 10KiB for 20 ranks in srs"},
		{"allreduce", "shape=lanes,fs=20KiB,w=2,iar=nbc/recdoubling,sag=sm/slots,srs=sm/slots", ""},
		{"scan", "shape=flat,fs=all,w=1,ix=nbc/pairwise", "pruned, group too large for pairwise: 120 ranks"},
	} {
		p := tasktest.Plan(t, c.plan)
		why := s.Pruned(tasktest.Requests(c.coll, 4<<20)[0], on, p)
		if c.why == "" && why != "" || !strings.HasPrefix(why, c.why) {
			t.Errorf("%s %s: %q, want %q", c.coll, c.plan, why, c.why)
		}
	}
}

// The heuristics never leave out as too small for solo what the built-in rule reads.
func TestHeuristicsLetRanksRead(t *testing.T) {
	s := tune.Space{Registry: all.Submodules()}
	read := 0
	for _, spec := range []string{"2", "4", "16", "4x2", "3x4", "8x8", "64x2", "a:3,b:1"} {
		on := tasktest.Topology(t, spec)
		for _, on := range []*levels.Topology{on, on.OneProcess()} {
			for _, coll := range tasks.Requestable() {
				for _, r := range tasktest.Requests(coll.String(), 64, 4<<10, 8<<10, 20<<10, 64<<10, 1<<20, 16<<20) {
					rule := s.Rule(r, on)
					read += b2i(strings.Contains(rule.String(), "=solo"))
					if why := s.Pruned(r, on, rule); strings.Contains(why, "solo") {
						t.Errorf("%v on %v, goroutines %v: %v: %s", r, on, on.IsOneProcess(), rule, why)
					}
				}
			}
		}
	}
	if read == 0 {
		t.Error("the rule never reads; what is tested?")
	}
}

// Between goroutine ranks heuristics compete with segments that processes would copy.
func TestHeuristicsAskForOneProcess(t *testing.T) {
	on := tasktest.Topology(t, "4")
	s := tune.Space{Registry: all.Submodules()}
	p := tasktest.Plan(t, "shape=han,fs=64KiB,w=2,sb=solo/linear")
	r := tasktest.Requests("bcast", 1<<20)[0]
	if why := s.Pruned(r, on, p); !strings.Contains(why, "too small for solo: less than 512KiB") {
		t.Errorf("processes: %q", why)
	}
	if why := s.Pruned(r, on.OneProcess(), p); why != "" {
		t.Errorf("goroutines: %q", why)
	}
}
