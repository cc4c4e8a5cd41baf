package tune

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/tasks"
)

// unit is a [costs.Unit] of any segment size: tasks in common to some plans.
type unit struct {
	costs.Unit // as the first plan has it
	curve      *costs.Curve
	base       *unit                     // without inner segments, with the largest window; nil: the unit itself
	users      map[int64]user            // by segment size, bytes: a plan to measure it with
	sizes      []int64                   // of users, the smallest first
	usual      bool                      // the built-in rule's plan of a request has it
	near       float64                   // time of the best plan with it by the best of its request; 0: unknown
	asked      map[int64]bool            // measured or refused sizes
	messages   map[int64]bool            // sizes of messages of plans with it, bytes
	colls      map[tasks.Collective]bool // of plans with it
}

// user is a request and a plan with a unit.
type user struct {
	request int // index
	plan    tasks.Plan
	phases  []int
	cut     int64 // most segments of a message in any plan: more of them would tell nothing
}

// composed is a configuration of a request with its units.
type composed struct {
	plan   tasks.Plan
	key    string // see pointKey
	made   *made
	cut    costs.Cut
	class  int32 // plans corrected alike
	family int32 // classes corrected alike, without knowledge about a class
	shape  int32 // its collective and shape
	outer  int32 // the shape with its algorithms between nodes
}

// made is a makeup with the units of a search.
type made struct {
	priced  *costs.Priced
	singles []*unit
	flows   []*unit
}

// unitsInUse of c: those of many segments only if it is cut.
func (c *composed) unitsInUse() []*unit {
	if c.cut.Segments < 2 {
		return c.made.singles
	}
	return append(c.made.singles[:len(c.made.singles):len(c.made.singles)], c.made.flows...)
}

// composeAll finds the units of each configuration. Those of blocks that differ are not taken apart.
func (p *predictor) composeAll() {
	p.plans = make([][]composed, len(p.requests))
	cache := map[string]*made{}
	for i, r := range p.requests {
		for _, c := range p.candidates[i] {
			if c.Rejected != "" || r.Differ() {
				continue
			}
			one := composed{plan: c.Plan, key: pointKey(r, c.Plan), cut: costs.CutOf(r, c.Plan)}
			key := c.Plan
			key.Segment = 0
			if key.Shape == tasks.HanLockstep {
				key.Window = 1
			}
			text := planKey(r, key)
			var known bool
			if one.made, known = cache[text]; !known {
				one.made = p.makeupOf(r, c.Plan)
				cache[text] = one.made
			}
			if one.made == nil {
				continue
			}
			p.enterUser(&one, i)
			p.plans[i] = append(p.plans[i], one)
		}
	}
	for _, u := range p.units {
		u.sizes = make([]int64, 0, len(u.users))
		for n := range u.users {
			u.sizes = append(u.sizes, n)
		}
		slices.Sort(u.sizes)
		if b := p.byKey[baseKey(u.Key, p.space)]; b != u {
			u.base = b
		}
	}
}

// makeupOf returns the makeup of all plans like q with any segments; nil: they can't be expanded.
func (p *predictor) makeupOf(r tasks.Request, q tasks.Plan) *made {
	m, err := costs.MakeupOf(r, p.topology, q)
	if err != nil {
		return nil
	}
	x := &made{priced: m.On(p.table.Book())}
	for _, u := range m.Singles {
		x.singles = append(x.singles, p.unit(u))
	}
	for _, level := range m.Flows {
		for _, u := range level {
			x.flows = append(x.flows, p.unit(u))
		}
	}
	return x
}

func (p *predictor) unit(u costs.Unit) *unit {
	u.Key.Segment = 0
	one := p.byKey[u.Key]
	if one == nil {
		one = &unit{
			Unit: u, curve: p.table.Book().Curve(u.Key), users: map[int64]user{},
			asked: map[int64]bool{}, messages: map[int64]bool{}, colls: map[tasks.Collective]bool{},
		}
		p.byKey[u.Key] = one
		p.units = append(p.units, one)
	}
	return one
}

// enterUser makes a plan a user of its units and finds its class.
func (p *predictor) enterUser(c *composed, i int) {
	n := c.cut.Bytes
	for _, u := range c.unitsInUse() {
		u.messages[p.requests[i].Bytes()], u.colls[p.requests[i].Coll] = true, true
	}
	for k, u := range c.made.singles {
		if _, known := u.users[n]; !known {
			u.users[n] = user{i, c.plan, []int{k}, 1}
		}
	}
	cut := "whole"
	if c.cut.Segments > 1 {
		cut = "cut"
		for _, u := range c.made.flows {
			by, known := u.users[n]
			if !known {
				by = user{i, c.plan, p.phasesOf(c, u), 0}
			}
			by.cut = max(by.cut, c.cut.Segments)
			u.users[n] = by
		}
	}
	family := strings.Join([]string{p.requests[i].Coll.String(), c.plan.Shape.String(), cut}, " ")
	outer := ""
	for _, key := range c.plan.Keys() {
		if one, _ := c.plan.Choice(key); key[0] != 's' && key[0] != 'm' {
			outer += " " + one.Submodule + "/" + one.Algorithm
		}
	}
	c.shape = p.number(p.requests[i].Coll.String() + " " + c.plan.Shape.String())
	c.outer = p.number(p.requests[i].Coll.String() + " " + c.plan.Shape.String() + outer)
	c.family, c.class = p.number(family), p.number(family+outer)
}

// phasesOf returns the phases of a unit in the pipeline of a plan. The first plan with the unit may have
// it in other phases.
func (p *predictor) phasesOf(c *composed, u *unit) []int {
	for _, f := range c.made.priced.Flows() {
		f.Key.Segment = 0
		if f.Key == u.Key {
			return f.Phases
		}
	}
	return u.Phases
}

func (p *predictor) number(text string) int32 {
	n, known := p.numbers[text]
	if !known {
		n = int32(len(p.numbers))
		p.numbers[text] = n
	}
	return n
}

// baseKey is the key of a unit without inner segments and with the largest window.
func baseKey(k costs.Key, s Space) costs.Key {
	words := strings.Split(k.By, ",")
	for i, w := range words {
		if parts := strings.Split(w, "/"); len(parts) > 2 {
			words[i] = strings.Join(parts[:2], "/")
		}
	}
	k.By = strings.Join(words, ",")
	if k.Window > 1 {
		k.Window = slices.Max(or(s.Windows, DefaultWindows))
	}
	return k
}

// nearestSize is the size of users closest to some bytes, by factors.
func (u *unit) nearestSize(bytes int64) int64 {
	return slices.MinFunc(u.sizes, func(a, b int64) int { return cmp.Compare(sizeFactor(a, bytes), sizeFactor(b, bytes)) })
}

// sizeFactor returns the larger one divided by the smaller one.
func sizeFactor(a, b int64) float64 {
	x, y := float64(max(a, 1)), float64(max(b, 1))
	return max(x/y, y/x)
}
