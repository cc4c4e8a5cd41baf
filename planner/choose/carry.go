package choose

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// carry corrects times that a table has of a machine of other sizes, where the machine is known: a plan takes here what
// it took there, times its simulated time here, by that of there. So a model that is wrong by a factor does no harm. Plans that
// were not measured there are left out, as what is known here predicts better, and those too long to be simulated.
//
// leave says that the plan that costs least on the machine decides. It is none of the table's then, and its time, corrected by
// the median of their corrections, is below all of theirs. said is for Explain.
func (t *Table) carry(q *Question, a *table.Answer) (said string, leave bool) {
	there := thereOf(a, q.On)
	said = fmt.Sprintf("known of %v, here %v%s", a.Carried, table.SizesOf(q.On), ofHosts(t.Provenance.Hosts))
	r, shared := classify(q.Request())
	if !t.Machine.isKnown() || there == nil || !shared {
		return said + ": the order of plans is that of there", false
	}
	known, off := t.Machine.correct(q, r, a.Estimates, a.Carried.String(), there)
	if len(known) == 0 {
		return said + ": no plan was measured there that could be simulated on both", true
	}
	slices.SortStableFunc(known, func(a, b table.Estimate) int { return cmp.Compare(a.NS, b.NS) })
	a.Estimates = known
	said += fmt.Sprintf(": times are corrected by simulations on both, on %s", t.Machine.Origin)
	if ns := t.Machine.faster(q, known, off); ns > 0 {
		return fmt.Sprintf("%s, and the machine's own plan takes %.1f µs by the same correction, that of the table %.1f", said, ns/1e3, known[0].NS/1e3), true
	}
	return said, false
}

// correct scales measured times of plans from one topology to this one, for a class of requests. It returns the plans whose
// simulated times are known on both, and the factors by which their measured times are off those. name is that of there.
func (m *Machine) correct(q *Question, r tasks.Request, all []table.Estimate, name string, there *levels.Topology) (known []table.Estimate, off []float64) {
	for _, e := range all {
		if e.Predicted {
			continue
		}
		if s, ok := m.scale(q, classScale{class{r, "", q.On}, e.Plan.String(), name}, there, e.Plan); ok {
			off = append(off, e.NS/s.there)
			e.NS *= s.here / s.there
			known = append(known, e)
		}
	}
	return known, off
}

// faster returns what the machine's own plan takes if it is none of the known ones and faster than the first of them, ns. Its
// simulated time is corrected by the median of off, by which those of known plans are off. 0: it isn't, or nothing is known.
func (m *Machine) faster(q *Question, known []table.Estimate, off []float64) (ns float64) {
	if _, err := m.Choose(q); err != nil || len(q.prices.Plans) == 0 || len(off) == 0 {
		return 0
	}
	own := q.named(q.prices.Plans[0].Plan)
	slices.Sort(off)
	ns, _ = q.prices.Time()
	ns *= off[(len(off)-1)/2]
	if ns*(1+m.margin()) >= known[0].NS || slices.ContainsFunc(known, func(e table.Estimate) bool { return q.named(e.Plan).Equal(own) }) {
		return 0
	}
	return ns
}

// named is a plan in the words of tables: all plans that do the same are one.
func (q *Question) named(p tasks.Plan) tasks.Plan {
	return table.Canonical(plans.Named(q.Asked, p, q.Registry), q.Request().Bytes())
}

// ofHosts names some of the hosts on which a table was measured.
func ofHosts(names []string) string {
	switch n := len(names); {
	case n == 0:
		return ""
	case n > 3:
		return fmt.Sprintf(", table of %s and %d more hosts", strings.Join(names[:2], ", "), n-2)
	}
	return ", table of " + strings.Join(names, ", ")
}

// thereOf returns the topology of an answer that is carried over, with the levels of here; nil: it isn't known.
func thereOf(a *table.Answer, here *levels.Topology) *levels.Topology {
	h := here.Hierarchy(0)
	var sizes []string
	for k := h.Depth() - 1; k >= 0; k-- {
		sizes = append(sizes, strconv.Itoa(a.Carried[string(rune(h.Level(k).Symbol))]))
	}
	text := strings.Join(sizes, "x")
	switch a.Neighbours[0].Entry.Layout {
	case table.Block:
	case table.Dealt:
		text += "/rr"
	default:
		return nil
	}
	there, err := levels.Parse(text)
	if err != nil || table.SizesOf(there).Compare(a.Carried) != 0 {
		return nil
	}
	if a.Neighbours[0].Entry.Ranks == table.Goroutines {
		there = there.OneProcess()
	}
	return there
}

// classScale stands for a plan's time on two topologies.
type classScale struct {
	class
	plan, there string
}

// scaled is the time of a plan here and there, ns. 0: not known.
type scaled struct{ here, there float64 }

// scale returns what a table's plan takes on two topologies of the machine, for a class of requests.
func (m *Machine) scale(q *Question, key classScale, there *levels.Topology, plan tasks.Plan) (s scaled, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, seen := m.scales[key]
	if seen {
		return s, s.there > 0
	}
	r := key.request
	here := builtin.Ask(r, q.On)
	if int(r.Root) >= there.Size() {
		r.Root = 0
	}
	s.here, s.there, known = priced.Scale(m.Machine, here, builtin.Ask(r, there), plan, q.Registry)
	if m.scales == nil || len(m.scales) >= maxClasses {
		m.scales = map[classScale]scaled{}
	}
	m.scales[key] = s
	return s, known
}
