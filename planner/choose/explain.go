package choose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Explain returns a text: the plan, the answer of each asked chooser, and the alternatives. asked and reg
// are the question's.
func (d *Decision) Explain(asked *builtin.Asked, reg submodules.Registry) string {
	var text strings.Builder
	r := asked.Request()
	fmt.Fprintf(&text, "%v on %v\n", r, asked.On)
	fmt.Fprintf(&text, "  plan: %v\n", d.Plan)
	for _, a := range d.inWords() {
		a.Explain(&text)
	}
	if !d.isPredicted() {
		fmt.Fprintf(&text, "  predicted: %s\n", d.predict(asked, reg))
	}
	for _, s := range tasks.ShapesOf(r.Coll) {
		if s != d.Plan.Shape {
			fmt.Fprintf(&text, "  alternative: shape=%v\n", s)
		}
	}
	g, err := asked.Outline(d.Plan)
	if err != nil {
		return text.String() // nobody could have compiled it
	}
	for k := range g.On.Depth() {
		for _, kind := range builtin.KindsAt(g, k) {
			fmt.Fprintf(&text, "  alternative: %v= %s\n", kind, reg.Offers(kind.Op, g.On.WithinNodes(k)))
		}
	}
	return text.String()
}

// Reasons returns the lines of [Decision.Explain] that say who chose the plan, and why.
func (d *Decision) Reasons() (lines []string) {
	var text strings.Builder
	for _, a := range d.inWords() {
		a.Explain(&text)
	}
	for line := range strings.Lines(text.String()) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// isPredicted reports whether the text has the plan's time from an answer.
func (d *Decision) isPredicted() bool {
	_, known := d.Predicted()
	_, ruled := find[*Followed](d).planOrNone()
	return known && !ruled
}

// predict says how long the plan takes on the known machine, or on an assumed one.
func (d *Decision) predict(asked *builtin.Asked, reg submodules.Registry) string {
	m, where := assumedFor(asked.On), " on an assumed machine, Gigabit Ethernet 50 µs away"
	if p := find[*Prices](d); p != nil && p.machine.isKnown() {
		m, where = p.machine.Machine, ""
	}
	one, err := priced.Predict(m, asked, d.Plan, reg)
	switch {
	case err != nil:
		return "not possible: " + err.Error()
	case one.Simulated > 0:
		return fmt.Sprintf("%.1f µs, simulated%s", one.Simulated/1e3, where)
	case one.Expected > 0:
		return fmt.Sprintf("at least %.1f µs%s: a rank's bytes on the slowest link", one.Expected/1e3, where)
	}
	text := fmt.Sprintf("%.1f µs%s", one.Price.NS/1e3, where)
	if all := parts(&one.Price.Terms); all != "" {
		text += ": " + all
	}
	return text
}

// assumedFor returns the machine assumed without a known one. Its missing levels are as another network.
func assumedFor(t *levels.Topology) *machine.Machine {
	m := machine.Assumed()
	for k := range t.Depth() {
		if _, err := m.Link(t.Level(k)); err != nil {
			another := m.Links[1]
			another.Level = machine.Symbol(t.Level(k).Symbol)
			m.Links = append(m.Links, another)
		}
	}
	return m
}

// inWords lists the answers in the order of the text: what is forced, then the rule if it
// chose, then those without an answer.
func (d *Decision) inWords() []Answer {
	place := func(a Answer) int {
		switch a.(type) {
		case *Narrowed:
			return 0
		case *Ruled:
			return 1
		}
		return 2
	}
	all := slices.Clone(d.Answers)
	slices.SortStableFunc(all, func(a, b Answer) int { return cmp.Compare(place(a), place(b)) })
	return all
}
