package distill

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// Bounds limit the cost of rules. Zeros are replaced.
type Bounds struct {
	Mean  float64 // slowdown on average over the points of a collective; 0: 1.02
	Worst float64 // slowdown of a point after pruning; 0: 1.15
	Most  int     // rules of a collective; 0: 40. It goes before the others
}

// Made is rules with their costs.
type Made struct {
	Text        string // for package rules
	Collectives []Cost
}

// Cost is the cost of a collective's rules, beside the fastest plan of each point.
type Cost struct {
	Collective         string
	Rules, Depth       int
	Points             int
	Left               int // points with layouts or operations beyond rules
	Mean, Worst        float64
	HeldOut            int // points of sizes kept from a second tree
	Unknown            int // of these, with an unknown time of the chosen plan
	HeldMean, HeldMost float64
}

// errEmpty is the answer to a table without points for rules.
var errEmpty = errors.New("the table has no entries that rules can be made of: layouts are block or dealt, operations built in")

// Rules makes rules of a table.
func Rules(t *table.Table, b Bounds) (*Made, error) {
	b = Bounds{cmp.Or(b.Mean, 1.02), cmp.Or(b.Worst, 1.15), cmp.Or(b.Most, 40)}
	if b.Mean < 1 || b.Worst < 1 || b.Most < 1 {
		return nil, fmt.Errorf("slowdowns %v and %v, %d rules; allowed are slowdowns from 1 and rules from 1 on", b.Mean, b.Worst, b.Most)
	}
	made := &Made{}
	var text strings.Builder
	for _, coll := range tasks.Requestable() {
		for _, differ := range []bool{true, false} { // the first rule with a decision counts; the second one is for both
			if all, left := pointsOf(t, coll.String(), differ); len(all) > 0 {
				name := coll.String()
				if differ {
					name += "v"
				}
				made.add(&text, name, all, left, b)
			}
		}
	}
	if len(made.Collectives) == 0 {
		return nil, errEmpty
	}
	made.Text = strings.TrimSuffix(text.String(), "\n")
	return made, nil
}

// add adds a rule made of points.
func (made *Made) add(text *strings.Builder, name string, all []*point, left int, b Bounds) {
	root, plans := grown(all, b)
	c := Cost{Collective: name, Depth: root.depth(), Points: len(all), Left: left}
	n, total := root.leaves()
	c.Rules, c.Mean = n, total/float64(len(all))
	for _, p := range all {
		c.Worst = max(c.Worst, p.cost[root.choose(p)])
	}
	c.holdOut(all, b)
	made.Collectives = append(made.Collectives, c)
	fmt.Fprintf(text, "%s:\n\tif %s then ", name, conditionAround(all))
	if root.yes == nil {
		text.WriteString(plans[root.plan])
	} else {
		text.WriteString("(")
		root.write(text, plans, "\t\t")
		text.WriteString("\n\t)")
	}
	text.WriteString("\n\n")
}

// grown returns the tree of some points, and its plans.
func grown(all []*point, b Bounds) (root *tree, plans []string) {
	plans = plansOf(all)
	root = newTree(all)
	root.grow()
	root.finish(b)
	return root, plans
}

// holdOut makes a tree without every second size of each machine, and asks it for these.
func (c *Cost) holdOut(all []*point, b Bounds) {
	sizes := map[string][]int64{}
	machine := func(p *point) string { return fmt.Sprint(p.entry.Levels, p.entry.Place) }
	for _, p := range all {
		sizes[machine(p)] = append(sizes[machine(p)], p.is[bytes])
	}
	for _, s := range sizes {
		slices.Sort(s)
	}
	var kept, held []*point
	for _, p := range all {
		copied := *p
		if of := sizes[machine(p)]; slices.Index(of, p.is[bytes])%2 == 1 && p.is[bytes] != of[len(of)-1] {
			held = append(held, &copied)
		} else {
			kept = append(kept, &copied)
		}
	}
	if c.HeldOut = len(held); c.HeldOut == 0 {
		return
	}
	root, plans := grown(kept, b)
	known := 0
	for _, p := range held {
		plan, err := tasks.ParsePlan(plans[root.choose(p)])
		ns, is := p.measuredTime(plan, p.entry.Largest())
		if err != nil || !is {
			c.Unknown++
			continue
		}
		known++
		c.HeldMean, c.HeldMost = c.HeldMean+ns/p.best, max(c.HeldMost, ns/p.best)
	}
	if known > 0 {
		c.HeldMean /= float64(known)
	}
}

// conditionAround returns the condition that a request is like those of the points: up to twice as many nodes
// and ranks, and four times the bytes.
func conditionAround(all []*point) string {
	var text []string
	for ask, name := range []string{nodes: "nodes", perNode: "pernode", bytes: "bytes"} {
		least, most := all[0].is[ask], all[0].is[ask]
		for _, p := range all {
			least, most = min(least, p.is[ask]), max(most, p.is[ask])
		}
		if feature(ask) == bytes {
			if most > 0 {
				text = append(text, "bytes <= "+tasks.FormatBytes(4*most))
			}
			continue
		}
		text = append(text, fmt.Sprintf("%s >= %d and %s <= %d", name, least, name, 2*most))
	}
	text = append(text, "balanced")
	for ask, name := range map[feature]string{ordered: "ordered", processes: "processes"} {
		if is := all[0].is[ask]; !slices.ContainsFunc(all, func(p *point) bool { return p.is[ask] != is }) {
			if is == 0 {
				name = "not " + name
			}
			text = append(text, name)
		}
	}
	slices.Sort(text[3:])
	return strings.Join(text, " and ")
}

// write writes a node: a condition for each leaf or node on the yes side.
func (t *tree) write(text *strings.Builder, plans []string, indent string) {
	word := "if "
	for ; t.yes != nil; t = t.no {
		text.WriteString("\n" + indent + word + t.condition() + " then ")
		word = "elif "
		if t.yes.yes == nil {
			text.WriteString(plans[t.yes.plan])
			continue
		}
		text.WriteString("(")
		t.yes.write(text, plans, indent+"\t")
		text.WriteString("\n" + indent + ")")
	}
	text.WriteString("\n" + indent + "else " + plans[t.plan])
}

// condition returns the condition of the yes side.
func (t *tree) condition() string {
	switch t.ask {
	case nodes:
		return fmt.Sprintf("nodes <= %d", t.most)
	case perNode:
		return fmt.Sprintf("pernode <= %d", t.most)
	case bytes:
		return "bytes <= " + tasks.FormatBytes(t.most)
	case ordered:
		return "not ordered"
	}
	return "not processes"
}
