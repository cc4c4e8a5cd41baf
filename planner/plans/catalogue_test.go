package plans_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// The catalogue has the rule's plan and all rivals that can be compiled, each plan once and in the words
// of Named. Naming a plan twice changes nothing.
func TestCatalogueHasAll(t *testing.T) {
	reg := all.Submodules()
	rng := rand.New(rand.NewPCG(7, 2))
	for range 25 {
		asked, ruled := drawn(t, rng)
		if asked.On.Size() > 70 {
			continue
		}
		known := map[string]bool{}
		for _, p := range plans.All(asked, ruled, reg) {
			if known[p.String()] {
				t.Fatalf("%v on %v: %v is there twice", asked.Request(), asked.On, p)
			}
			known[p.String()] = true
			if _, err := asked.Fits(p, reg); err != nil {
				t.Errorf("%v on %v: %v: %v", asked.Request(), asked.On, p, err)
			}
			if again := plans.Named(asked, p, reg); !again.Equal(p) {
				t.Errorf("%v is named %v", p, again)
			}
		}
		for _, p := range append(plans.Rivals(asked, ruled), ruled) {
			if _, err := asked.Fits(p, reg); err == nil && !known[plans.Named(asked, p, reg).String()] {
				t.Errorf("%v on %v: the catalogue lacks %v", asked.Request(), asked.On, p)
			}
		}
	}
}

func TestNamed(t *testing.T) {
	for _, test := range []struct {
		on, plan, want string
		bytes          int64
	}{
		{"4x1", "shape=han,fs=all,w=1,i=adapt", "shape=han,fs=all,w=1,ib=adapt/binomial", 4096},
		{"4x1", "shape=han,fs=64KiB,w=4,i=nbc/linear", "shape=han,fs=all,w=1,ib=nbc/linear", 4096},
		{"4x1", "shape=han,fs=1KiB,w=4,i=adapt/chain/2KiB", "shape=han,fs=1KiB,w=4,ib=adapt/chain", 4096},
		{"4x2", "shape=flat,fs=all,w=1,i=nbc/linear,s=sm", "shape=flat,fs=all,w=1,ib=nbc/linear", 4096},
		{"4x1", "shape=lanes,fs=all,w=1", "shape=lanes,fs=all,w=1", 4096}, // a bcast has no lanes: it stays
	} {
		p := tasktest.Plan(t, test.plan)
		asked := builtin.Ask(tasktest.Request(tasks.Bcast, test.bytes), tasktest.Topology(t, test.on))
		if got := plans.Named(asked, p, all.Submodules()).String(); got != test.want {
			t.Errorf("%s on %s: %s, want %s", test.plan, test.on, got, test.want)
		}
	}
}

// A combination chooses for every kind of task, and leaves memory that nodes share to the inside of
// nodes. No two are equal.
func TestCombinations(t *testing.T) {
	reg := all.Submodules()
	c := plans.Combinations{Registry: reg, Inner: 32 << 10}
	for _, spec := range []string{"4x1", "4x2", "2x2x2", "8"} {
		on := tasktest.Topology(t, spec)
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Allreduce, tasks.Alltoall, tasks.Barrier} {
			bare := tasks.Plan{Shape: tasks.ShapesOf(coll)[0], Segment: tasks.Whole, Window: 1}
			g, err := builtin.Outline(tasktest.Request(coll, 4<<10), on, bare)
			if err != nil {
				t.Fatal(err)
			}
			var seen []string
			for _, p := range c.Of(tasktest.Request(coll, 4<<10), on, bare) {
				if text := p.String(); slices.Contains(seen, text) {
					t.Errorf("%v on %s: %s is there twice", coll, spec, text)
				} else {
					seen = append(seen, text)
				}
				for _, ph := range g.Phases {
					choice, chosen := p.For(ph.Kind)
					if !chosen || !reg.Does(choice, ph.Kind.Op) {
						t.Errorf("%v on %s: %v does no %v", coll, spec, p, ph.Kind)
					}
					m, err := reg.Find(choice.Submodule)
					if err != nil || m.Reach() == submodules.SharedNode && !g.On.WithinNodes(ph.Level) {
						t.Errorf("%v on %s: %v has %v for %v: %v", coll, spec, p, choice, ph.Kind, err)
					}
				}
			}
			if len(seen) < 2 {
				t.Errorf("%v on %s: %q", coll, spec, seen)
			}
		}
	}
}

// A shape that doesn't fit is not completed.
func TestUnfitShape(t *testing.T) {
	p := tasks.Plan{Shape: tasks.Lanes, Segment: tasks.Whole, Window: 1}
	made := plans.Combinations{Registry: all.Submodules()}.Of(tasktest.Request(tasks.Bcast, 16), tasktest.Topology(t, "4x2"), p)
	if len(made) != 1 || !made[0].Equal(p) {
		t.Errorf("%v", made)
	}
}
