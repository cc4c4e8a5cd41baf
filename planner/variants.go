package planner

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/tasks"
)

// variants are the candidates of package feedback: a communicator decides and compiles by one of them at a time. A candidate
// is a number of a named value of the rules, or plans that are forced before others.
type variants struct {
	c      *Comm
	value  string // the name; empty: they are plans
	of     []*Collective
	frames []*frame // one for each candidate
}

// frame keeps a communicator's decisions and compiled calls under a candidate.
type frame struct {
	forced tasks.Forced
	origin string
	value  int64
	memo   *memo // nil: it is not in use
	kept   kept
	known  map[tasks.Request]*choose.Decision
	of     []Collective // of variants.of: their decisions and programs
}

// newVariants makes the candidates that a tuner tries, and returns their names and the index of the present one. Nothing is sent.
func (c *Comm) newVariants(value string, numbers []int64, plans []string, of []*Collective) (_ inside.Variants, names []string, holds int, err error) {
	if err := c.checkMade(); err != nil {
		return nil, nil, 0, err
	}
	v := &variants{c: c, value: value, of: slices.Clone(of)}
	switch {
	case (value == "") == (len(plans) == 0):
		err = fmt.Errorf("value %q and plans %q; it takes one of both", value, plans)
	case value != "":
		names, holds, err = v.addNumbers(numbers)
	default:
		names, err = v.addPlans(plans)
	}
	return v, names, holds, errors.Join(v.checkOwners(), err)
}

// checkOwners returns an error unless all collectives are the communicator's.
func (v *variants) checkOwners() error {
	for _, col := range v.of {
		if col == nil || col.comm != v.c {
			return errors.New("a collective of another communicator, or none")
		}
	}
	return nil
}

// addNumbers makes a frame for each number of the value, and returns the index of the present one.
func (v *variants) addNumbers(numbers []int64) (names []string, holds int, err error) {
	now, err := v.c.Value(v.value)
	if err != nil {
		return nil, 0, err
	}
	all := numbers
	if !slices.Contains(all, now) {
		all = append([]int64{now}, all...)
	}
	if len(all) == 1 {
		return nil, 0, fmt.Errorf("numbers %v; it takes some beside what $%s is, %d", numbers, v.value, now)
	}
	for _, n := range all {
		if n < 0 {
			return nil, 0, fmt.Errorf("%d for $%s; allowed are 0 and more", n, v.value)
		}
		names = append(names, strconv.FormatInt(n, 10))
		v.frames = append(v.frames, &frame{forced: v.c.forced, origin: v.c.origin, value: n})
	}
	return names, slices.Index(all, now), nil
}

// addPlans makes a frame for each of some plans, behind one without a change.
func (v *variants) addPlans(plans []string) (names []string, err error) {
	names = []string{"what is chosen"}
	v.frames = []*frame{{forced: v.c.forced, origin: v.c.origin}}
	for _, text := range plans {
		by := "a tuner"
		mine, err := choose.ParseForced(text, by, v.c.registry)
		if err != nil {
			return nil, err
		}
		if v.c.origin != "" && len(v.c.forced) > 0 {
			by += " and " + v.c.origin
		}
		names = append(names, text)
		v.frames = append(v.frames, &frame{forced: append(mine, v.c.forced...), origin: by}) // the last ones win
	}
	return names, nil
}

// Explain adds a line to the text of collectives.
func (v *variants) Explain(line func() string) { v.c.note = line }

// Prepare makes candidate i's frame, with the collectives compiled anew, while old is in use.
func (v *variants) Prepare(i, old int) error {
	f := v.frames[i]
	f.memo, f.kept, f.known = &memo{}, newKept(), nil
	f.of = make([]Collective, len(v.of))
	v.swap(f, v.frames[old])
	defer v.swap(v.frames[old], f)
	for k, col := range v.of {
		d, err := v.c.decide(&col.request, &v.c.base)
		if err != nil {
			return err
		}
		next, err := v.c.prepareBy(d, col.request, userCall, col.send, col.recv)
		if err != nil {
			return err
		}
		f.of[k].adopt(next)
	}
	return nil
}

// adopt takes over decision and program of another collective on the same buffers.
func (c *Collective) adopt(o *Collective) {
	c.decision, c.compiled, c.run, c.finish, c.counter = o.decision, o.compiled, o.run, o.finish, o.counter
}

// Enter goes from a candidate's frame to another's.
func (v *variants) Enter(from, to int) {
	was, now := v.frames[from], v.frames[to]
	v.swap(now, was)
	if len(was.of) == 0 {
		was.of = make([]Collective, len(v.of))
	}
	for k, col := range v.of {
		was.of[k].adopt(col)
		col.adopt(&now.of[k])
		_ = col.run.Rebind(col.send, col.recv) // it is not running, and the buffers are as long
		_ = col.run.SetUrgency(col.urgency)
	}
}

// swap lets the communicator decide by a frame, and keeps its state in another.
func (v *variants) swap(now, was *frame) {
	c := v.c
	if c.rules != nil && v.value != "" {
		_ = c.rules.Set(v.value, now.value) // both were looked at
	}
	c.trials.mu.Lock()
	was.known, c.trials.known = c.trials.known, now.known
	c.trials.mu.Unlock()
	c.store.swap(&now.kept, &was.kept, func() {
		c.forced, c.origin = now.forced, now.origin
		was.memo, c.memo = c.memo, now.memo
	})
}

// Drop forgets a candidate's decisions and compiled calls.
func (v *variants) Drop(i int) {
	f := v.frames[i]
	f.memo, f.kept, f.known, f.of = nil, kept{}, nil, nil
}
