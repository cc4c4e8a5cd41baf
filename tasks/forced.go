package tasks

import (
	"fmt"
	"strings"
)

// Forced is a list of plans, each for one collective or for all.
type Forced []struct {
	Coll Collective // 0: all
	Plan Plan
}

// ParseForced reads plans separated by semicolons; a collective's name and a colon in front
// limit one to this collective: allreduce:shape=flat;w=8.
func ParseForced(s string) (Forced, error) {
	var forced Forced
	for _, part := range strings.Split(s, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		var coll Collective
		if name, rest, ok := strings.Cut(part, ":"); ok {
			var err error
			if coll, err = ParseCollective(strings.TrimSpace(name)); err != nil {
				return nil, fmt.Errorf("plan %q: %w", part, err)
			}
			part = rest
		}
		p, err := ParsePlan(part)
		if err != nil {
			return nil, err
		}
		forced = append(forced, struct {
			Coll Collective
			Plan Plan
		}{coll, p})
	}
	return forced, nil
}

// For joins the forced plans for a collective; later words win over earlier ones. A plan for all
// with a shape is for the collectives of this shape.
func (f Forced) For(c Collective) Plan {
	var p Plan
	for _, item := range f {
		if item.Coll == c || item.Coll == 0 && (item.Plan.Shape == 0 || item.Plan.Shape.Fits(c)) {
			p = item.Plan.Over(p)
		}
	}
	return p
}
