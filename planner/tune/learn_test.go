package tune_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// slowdowns returns how many times as long as the best plan what the entries choose takes.
func slowdowns(t *testing.T, s *tune.Search, f *fakeMeter, entries []table.Entry) (all []float64) {
	t.Helper()
	for _, r := range s.Requests {
		best := math.Inf(1)
		for _, p := range s.Space.Plans(r, s.Topology) {
			best = min(best, f.time(r, p))
		}
		at := slices.IndexFunc(entries, func(e table.Entry) bool { return e.Collective == r.Coll.String() && e.Bytes == r.Bytes() })
		if at < 0 {
			t.Fatalf("no entry for %v", r)
		}
		p := tasktest.Plan(t, entries[at].Candidates[0].Plan)
		all = append(all, f.time(r, p)/best)
	}
	return all
}

// Method learn measures a small part of what exhaustive search does, and chooses nearly as well,
// whatever it learns from.
func TestLearn(t *testing.T) {
	alone(t)
	whole, f := newSearch(t, "4x2", tune.Exhaustive, "bcast")
	if _, err := whole.Run(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	every := f.collectives
	for _, words := range []string{"", "cost-blind", "variance,numbers,no-prior"} {
		s, f := newSearch(t, "4x2", tune.Learn, "bcast")
		var err error
		if s.Learn, err = learn.ParseOptions(words); err != nil {
			t.Fatal(err)
		}
		s.Learn.Trees = 15
		var told []string
		s.Learning = func(text string) { told = append(told, text) }
		tuned, err := s.Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		slow, sum := slowdowns(t, s, f, tuned.Entries), 0.0
		for _, x := range slow {
			sum += x / float64(len(slow))
		}
		if sum > 1.2 || words == "" && sum > 1.1 {
			t.Errorf("%q: mean slowdown %.3f of %.2f", words, sum, slow)
		}
		if 2*f.collectives > every {
			t.Errorf("%q: %d measurements; exhaustive search makes %d", words, f.collectives, every)
		}
		if len(told) == 0 || !strings.Contains(strings.Join(told, "\n"), "not measured") {
			t.Errorf("%q: told %q", words, told)
		}
		for _, e := range tuned.Entries {
			if e.Candidates[0].From == table.FromPredicted {
				t.Errorf("%q: %s chooses what nobody has measured: %v", words, e.Key(), e.Candidates[0])
			}
		}
	}
}

// Each fifth measurement is of a size that nobody asked for, near one that is asked for. It has
// no entry.
func TestLearnMeasuresOddSizes(t *testing.T) {
	alone(t)
	s, f := newSearch(t, "4x2", tune.Learn, "bcast")
	s.Learn.Trees = 20
	tuned, err := s.Run(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	odd := 0
	for _, m := range tuned.Measured {
		if slices.Contains(someSizes, m.Bytes) {
			continue
		}
		odd++
		if !slices.ContainsFunc(someSizes, func(n int64) bool { return 4*m.Bytes >= 3*n && 2*m.Bytes < 3*n }) || m.Bytes%4 != 0 {
			t.Errorf("%d bytes were measured; sizes are %v", m.Bytes, someSizes)
		}
	}
	if odd == 0 || 3*odd > len(tuned.Measured) || len(tuned.Entries) != len(someSizes) {
		t.Errorf("%d of %d measurements are of other sizes, %d entries", odd, len(tuned.Measured), len(tuned.Entries))
	}
}

// Equal searches come to equal tables, and one that was interrupted goes on with what it has.
func TestLearnResumes(t *testing.T) {
	alone(t)
	run := func(ask int, from *table.Table) (*table.Table, int, error) {
		s, f := newSearch(t, "2x2", tune.Learn, "bcast,reduce")
		s.Table, s.Learn.Trees, s.Requests = from, 20, s.Requests[:8]
		asked := 0
		s.Interrupted = func(context.Context) (bool, error) { asked++; return asked > len(s.Requests)+ask, nil }
		made, err := s.Run(t.Context(), f)
		return made, f.collectives, err
	}
	one, count, err := run(1<<30, nil)
	if err != nil {
		t.Fatal(err)
	}
	if two, _, err := run(1<<30, nil); err != nil || cmp.Diff(choices(one), choices(two)) != "" {
		t.Errorf("%v: a second search differs: %s", err, cmp.Diff(choices(one), choices(two)))
	}
	part, before, err := run(12, nil)
	if !errors.Is(err, tune.ErrInterrupted) || len(part.Entries) == 0 {
		t.Fatalf("%v: %d entries", err, len(part.Entries))
	}
	again, _ := tabletest.RoundTrip(t, part)
	if made, after, err := run(1<<30, again); err != nil || before+after > 2*count || len(made.Entries) != len(one.Entries) {
		t.Errorf("%v: %d measurements, then %d; at once %d; %d entries", err, before, after, count, len(made.Entries))
	}
}

// A rank that saves its table now and then, as the first one does, measures the same as one that
// doesn't: ranks would part otherwise.
func TestLearnMeasuresAlikeWhoeverSaves(t *testing.T) {
	alone(t)
	var told [2][]string
	saved := 0
	for rank := range told {
		s, f := newSearch(t, "4x2", tune.Learn, "bcast,reduce")
		s.Learn.Trees = 15
		s.Learning = func(text string) { told[rank] = append(told[rank], text) }
		if rank == 0 {
			s.Save = func(*table.Table) error { saved++; return nil }
		}
		if _, err := s.Run(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if saved == 0 || !slices.Equal(told[0], told[1]) {
		t.Errorf("%d saves: %s", saved, cmp.Diff(told[0], told[1]))
	}
}

// What no submodule lowers is passed over.
func TestLearnPassesOverRefusals(t *testing.T) {
	alone(t)
	s, f := newSearch(t, "2x2", tune.Learn, "bcast")
	s.Learn.Trees = 20
	f.err = submodules.ErrUnsupported
	made, err := s.Run(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range made.Entries {
		if strings.Contains(e.Candidates[0].Plan, "chain") {
			t.Errorf("%s chooses what can't be lowered: %v", e.Key(), e.Candidates[0].Plan)
		}
	}
}
