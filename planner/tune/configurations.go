package tune

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Configuration is one point of a [Space] for messages of one size.
type Configuration struct {
	Plan     tasks.Plan
	Rejected string // why it is not measured; empty: it is
	Added    bool   // the lists of the space don't have it: it is the built-in rule's, or the cheapest
}

// Configurations lists the space for a request on a topology: each plan once,
// though several words may say it, such as windows of a single segment. Plans
// ruled out by the request, the topology or the heuristics come with the reason.
// The built-in rule's plan always competes: so no table needs to be worse.
func (s Space) Configurations(r tasks.Request, t *levels.Topology) []Configuration {
	return s.configurations(r, newTemplates(s, t))
}

// configurations is Configurations with templates for all sizes.
func (s Space) configurations(r tasks.Request, by *templates) []Configuration {
	var all []Configuration
	seen := map[string]bool{}
	for _, cut := range s.cutPlans(r) {
		for _, from := range by.forShape(r, cut.Shape) {
			q := from.plan
			q.Segment, q.Window = cut.Segment, cut.Window
			for _, q := range append([]tasks.Plan{q}, s.thresholdsOf(r, q)...) {
				q = table.Canonical(q, r.Bytes())
				if key := q.String(); !seen[key] {
					seen[key] = true
					all = append(all, Configuration{Plan: q, Rejected: s.whyRejected(r, by.topology, q, &from)})
				}
			}
		}
	}
	all = s.dropDear(all, r, by.topology)
	if p, known := s.cheapestPlan(r, by.topology); known {
		all = s.withRival(all, r, by.topology, p)
	}
	return s.withRival(all, r, by.topology, s.Rule(r, by.topology))
}

// dropDear leaves out plans that are too dear on the space's machine.
func (s Space) dropDear(all []Configuration, r tasks.Request, t *levels.Topology) []Configuration {
	var plans []tasks.Plan
	var at []int
	for i, c := range all {
		if c.Rejected == "" {
			plans, at = append(plans, c.Plan), append(at, i)
		}
	}
	for k, why := range s.tooDear(plans, r, t) {
		all[at[k]].Rejected = why
	}
	return all
}

// withRival lets a plan compete even if the lists lack it, or the heuristics leave it out.
func (s Space) withRival(all []Configuration, r tasks.Request, t *levels.Topology, p tasks.Plan) []Configuration {
	if _, err := builtin.Fits(r, t, p, s.Registry); err != nil {
		return all
	}
	i := slices.IndexFunc(all, func(c Configuration) bool { return c.Plan.Equal(p) })
	if i < 0 {
		return append(all, Configuration{Plan: p, Added: true})
	}
	all[i].Rejected = ""
	return all
}

// Plans lists the configurations to measure.
func (s Space) Plans(r tasks.Request, t *levels.Topology) []tasks.Plan {
	var plans []tasks.Plan
	for _, c := range s.Configurations(r, t) {
		if c.Rejected == "" {
			plans = append(plans, c.Plan)
		}
	}
	return plans
}

// Rejections counts rejected configurations by reason.
func Rejections(all []Configuration) map[string]int {
	counts := map[string]int{}
	for _, c := range all {
		if c.Rejected != "" {
			reason, _, _ := strings.Cut(c.Rejected, ": ")
			counts[reason]++
		}
	}
	return counts
}

// RejectionText lists the counts of [Rejections] in a fixed order.
func RejectionText(counts map[string]int) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[reason], reason))
	}
	return strings.Join(parts, ", ")
}

// whyRejected says why a plan of a template is not measured; empty if it is.
func (s Space) whyRejected(r tasks.Request, t *levels.Topology, p tasks.Plan, from *template) string {
	if from.refused != nil {
		return "not supported: " + from.refused.Error()
	}
	if p.Shape.IsFlat() && p.Shape != tasks.Flat && (t.Nodes() == 1 || t.Nodes() == t.Size()) {
		return "the same without flat-: all groups but one have one rank"
	}
	if s.Heuristics {
		return s.whyPruned(from.outline, r, p)
	}
	return ""
}

// templates are a space's plans without segment size and window. Those are the same for all
// sizes of message, so each collective and shape is looked at once.
type templates struct {
	space    Space
	topology *levels.Topology
	known    map[templateKey][]template
}

// templateKey is a kind of request with a shape: templates depend on both.
type templateKey struct {
	request tasks.Request // without elements
	shape   tasks.Shape
}

// template is a plan without segment size and window.
type template struct {
	plan    tasks.Plan
	outline *tasks.Graph // nil: there is none
	refused error        // why no segment size and window makes it a plan; nil: it can be compiled
}

func newTemplates(s Space, t *levels.Topology) *templates {
	return &templates{space: s, topology: t, known: map[templateKey][]template{}}
}

// forShape returns the templates of a shape for a request.
func (t *templates) forShape(r tasks.Request, shape tasks.Shape) []template {
	bare := r
	bare.Count, bare.Pitch, bare.Counts, bare.Matrix = 0, 0, tasks.Counts{}, tasks.Matrix{}
	key := templateKey{bare, shape}
	all, known := t.known[key]
	if !known {
		all = t.make(r, shape)
		t.known[key] = all
	}
	return all
}

func (t *templates) make(r tasks.Request, shape tasks.Shape) (all []template) {
	whole := tasks.Plan{Shape: shape, Segment: tasks.Whole, Window: 1}
	bare, err := builtin.Outline(r, t.topology, whole)
	if err != nil {
		return []template{{plan: t.space.Plan.Over(tasks.Plan{Shape: shape}), refused: err}}
	}
	outline := bare // of a plan with the space's order
	if whole.Order = t.space.Plan.Order; whole.Order != 0 {
		outline, err = builtin.Outline(r, t.topology, whole)
	}
	seen := map[string]bool{}
	for _, inner := range or(t.space.Inners, DefaultInners) {
		for _, base := range (plans.Combinations{Registry: t.space.allowedSubmodules(), Inner: inner}).On(bare, tasks.Plan{Shape: shape}) {
			for _, p := range append([]tasks.Plan{base}, plans.Variants(bare, base, t.space.Registry, t.space.Numbers, t.space.Inners == nil)...) {
				p = t.space.Plan.Over(p)
				if text := p.String(); !seen[text] {
					seen[text] = true
					all = append(all, template{plan: p, outline: outline, refused: err})
					if err == nil {
						all[len(all)-1].refused = whyUnsupported(t.space.Registry, outline, p)
					}
				}
			}
		}
	}
	return all
}

// whyUnsupported reports why a registry can't compile a plan with an outline.
func whyUnsupported(reg submodules.Registry, outline *tasks.Graph, p tasks.Plan) error {
	g := *outline
	g.Plan = p
	return reg.Supports(&g)
}
