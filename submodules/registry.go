package submodules

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// Registry is a set of submodules to choose from.
type Registry []Submodule

// Find looks a submodule up by name.
func (r Registry) Find(name string) (Submodule, error) {
	for _, s := range r {
		if s.Name() == name {
			return s, nil
		}
	}
	var names []string
	for _, s := range r {
		names = append(names, s.Name())
	}
	return nil, fmt.Errorf("unknown submodule %q; known are %s", name, strings.Join(names, ", "))
}

// Check reports the first unknown word of a plan: a submodule, an algorithm, or a parameter that
// the algorithm doesn't take.
func (r Registry) Check(p tasks.Plan) error {
	for _, key := range p.Keys() {
		c, _ := p.Choice(key)
		s, err := r.Find(c.Submodule)
		if err != nil {
			return fmt.Errorf("%s=%v: %w", key, c, err)
		}
		if c.Algorithm == "" && c.Inner == 0 && c.N == 0 {
			continue
		}
		a, ok := find(s, c.Algorithm, 0)
		if !ok {
			return fmt.Errorf("%s=%v: unknown algorithm %q; %s has %s", key, c, c.Algorithm, s.Name(), algorithmNames(s, 0))
		}
		if c.Inner != 0 && !a.Inner {
			return fmt.Errorf("%s=%v: %s/%s takes no inner segment", key, c, s.Name(), a.Name)
		}
		if c.N != 0 && !a.Number.Taken() {
			return fmt.Errorf("%s=%v: %s/%s takes no number", key, c, s.Name(), a.Name)
		}
	}
	return nil
}

// Algorithm returns the algorithm that a choice names; false if it names none, or leaves it to
// the submodule.
func (r Registry) Algorithm(c tasks.Choice) (a Algorithm, known bool) {
	if c.Algorithm == "" {
		return a, false
	}
	if row, known := r.Row(c, 0); known {
		return *row, true
	}
	return a, false
}

// Does reports whether a choice can do an operation, somewhere. Check has nothing against it.
func (r Registry) Does(c tasks.Choice, op tasks.Collective) bool {
	_, does := r.Row(c, op)
	return does
}

// Row returns the algorithm for an operation by such a choice; false if there is none. Nobody
// may write to it.
func (r Registry) Row(c tasks.Choice, op tasks.Collective) (*Algorithm, bool) {
	s, err := r.Find(c.Submodule)
	if err != nil {
		return nil, false
	}
	return find(s, c.Algorithm, op)
}

// find returns the submodule's algorithm of a name for op. An empty name stands for any
// algorithm, op 0 for any operation.
func find(s Submodule, name string, op tasks.Collective) (*Algorithm, bool) {
	all := s.Algorithms()
	for i := range all {
		if a := &all[i]; (name == "" || a.Name == name) && (op == 0 || a.Does(op)) {
			return a, true
		}
	}
	return nil, false
}

func algorithmNames(s Submodule, op tasks.Collective) string {
	var names []string
	for _, a := range s.Algorithms() {
		if op == 0 || a.Does(op) {
			names = append(names, a.Name)
		}
	}
	return strings.Join(names, ", ")
}

// resolve finds the submodule and the algorithm for a task kind under a plan.
func (r Registry) resolve(p tasks.Plan, k tasks.Kind) (Submodule, *Algorithm, tasks.Choice, error) {
	c, ok := p.For(k)
	if !ok {
		return nil, nil, c, fmt.Errorf("%v: plan %q chooses no submodule for level %c", k, p, k.Symbol)
	}
	s, err := r.Find(c.Submodule)
	if err != nil {
		return nil, nil, c, fmt.Errorf("%v=%v: %w", k, c, err)
	}
	a, ok := find(s, c.Algorithm, k.Op)
	if !ok {
		return nil, nil, c, fmt.Errorf("%v=%v: %v by %s: %w; for %v there is %s",
			k, c, k.Op, c, ErrUnsupported, k.Op, r.offers(k.Op, SharedNode))
	}
	if c.Inner != 0 && !a.Inner {
		return nil, nil, c, fmt.Errorf("%v=%v: an inner segment for %s/%s: %w", k, c, s.Name(), a.Name, ErrUnsupported)
	}
	if c.N != 0 && !a.Number.Taken() {
		return nil, nil, c, fmt.Errorf("%v=%v: a number for %s/%s: %w", k, c, s.Name(), a.Name, ErrUnsupported)
	}
	return s, a, c, nil
}

// Offers lists submodule/algorithm for an operation, those of one node included
// if all ranks share memory.
func (r Registry) Offers(op tasks.Collective, shared bool) string {
	if shared {
		return r.offers(op, SharedNode)
	}
	return r.offers(op, Anywhere)
}

// offers lists submodule/algorithm for an operation over the given reach.
func (r Registry) offers(op tasks.Collective, reach Reach) string {
	return r.list(op, func(s Submodule, _ *Algorithm) bool { return s.Reach() <= reach })
}

// keepTree lists submodule/algorithm for an operation with order=tree.
func (r Registry) keepTree(op tasks.Collective) string {
	return r.list(op, func(_ Submodule, a *Algorithm) bool { return a.keepsTree(op) })
}

func (r Registry) list(op tasks.Collective, is func(s Submodule, a *Algorithm) bool) string {
	var all []string
	for _, s := range r {
		for _, a := range s.Algorithms() {
			if a.Does(op) && is(s, &a) {
				all = append(all, s.Name()+"/"+a.Name)
			}
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
