package submoduletest

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Run tests s against its declarations, as subtests algorithm/operation that run beside each other.
func Run(t *testing.T, s submodules.Submodule) {
	t.Helper()
	debug.SetGCPercent(800) // the heap is a few MB, and all of it new: collecting it takes a third of the time
	report := func(name string, check func() error) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := check(); err != nil {
				t.Error(err)
			}
		})
	}
	report("declares", func() error { return declares(s) })
	report("refuses", func() error { return refuses(s) })
	for _, a := range s.Algorithms() {
		for _, op := range a.Ops {
			u := underTest{sub: s, algo: a, op: op, most: maxGroup}
			report(a.Name+"/"+op.String()+"/groups", u.groups)
			report(a.Name+"/"+op.String()+"/levels", u.levels)
			report(a.Name+"/"+op.String()+"/hand", u.hand)
			if a.Number.Taken() {
				report(a.Name+"/"+op.String()+"/numbers", u.numbers)
			}
			if s.Reach() == submodules.Anywhere { // others share memory, and send few messages
				report(a.Name+"/"+op.String()+"/traits", u.traits)
			} else if a.Handed == submodules.Posted {
				report(a.Name+"/"+op.String()+"/schedule", u.schedule)
			}
		}
	}
}

// declares checks the names and texts of a submodule: plans can write the names, and
// no text is empty.
func declares(s submodules.Submodule) error {
	var errs []error
	complain := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if text := s.Doc(); text == "" || strings.Contains(text, "\n") {
		complain("%s: Doc is %q, want one line", s.Name(), text)
	}
	if len(s.Algorithms()) == 0 {
		complain("%s: no algorithms", s.Name())
	}
	seen := map[string]bool{}
	for _, a := range s.Algorithms() {
		c := tasks.Choice{Submodule: s.Name(), Algorithm: a.Name}
		plan, err := tasks.ParsePlan("i=" + c.String())
		if read, _ := plan.Choice("i"); err != nil || read != c || a.Name == "" {
			complain("%s: a plan can't name the algorithm %q: %v", s.Name(), a.Name, err)
		}
		if seen[a.Name] {
			complain("%v: two algorithms have this name", c)
		}
		seen[a.Name] = true
		if a.Doc == "" || strings.Contains(a.Doc, "\n") || a.Source == "" {
			complain("%v: Doc is %q and Source %q, want one line each", c, a.Doc, a.Source)
		}
		if len(a.Ops) == 0 {
			complain("%v: no operations", c)
		}
	}
	return errors.Join(errs...)
}

// refuses checks that an algorithm returns an error for each other operation than its own, even
// to a caller who didn't ask before.
func refuses(s submodules.Submodule) error {
	var errs []error
	for _, a := range s.Algorithms() {
		for _, op := range tasks.Collectives() {
			if a.Does(op) {
				continue
			}
			if err := lowerAlone(s, a, op); !errors.Is(err, submodules.ErrUnsupported) {
				errs = append(errs, fmt.Errorf("%s/%s: %v is not declared: got error %v, want %v", s.Name(), a.Name, op, err, submodules.ErrUnsupported))
			}
		}
	}
	return errors.Join(errs...)
}

// lowerAlone calls Lower with an emitter that takes no steps.
func lowerAlone(s submodules.Submodule, a submodules.Algorithm, op tasks.Collective) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it emits steps: %v", p)
		}
	}()
	span := tasks.Span{Region: tasks.Recv, Len: 8}
	return s.Lower(new(submodules.Emitter), &submodules.Call{
		Task:      tasks.Task{Kind: tasks.Kind{Symbol: 's', Op: op}, Group: &levels.Group{Ranks: []levels.Rank{0, 1}}, Src: span, Dst: span},
		Algorithm: a.Name, Elem: 1,
	})
}

// same compares two programs of one rank.
func same(a, b *submodules.Program) error {
	if !reflect.DeepEqual(a.Steps(), b.Steps()) || !reflect.DeepEqual(a.Peers, b.Peers) || a.Scratch != b.Scratch || a.Slots != b.Slots {
		return fmt.Errorf("rank %d: lowered twice, the steps differ", a.Rank)
	}
	for id := range dag.ID(a.Len()) {
		if !reflect.DeepEqual(a.Succ(id), b.Succ(id)) {
			return fmt.Errorf("rank %d: lowered twice, what follows %s differs", a.Rank, a.Label(a.Step(id)))
		}
	}
	return nil
}
