package tune

import "slices"

// Tasks runs some configurations once, predicts the others and all sizes from that, and
// runs the best again.
var Tasks = &Method{
	name: "tasks", last: racedAtLeast,
	about: `of plans that differ in several levels' algorithms, runs those
that differ from a base in one, and adds up the differences;
of sizes, runs some segments of a plan that cuts, once for all
of them, and of a plan of one segment those sizes that no line
through others tells; runs nothing near what is twice as slow
as the best; then runs what looks best in turns`,
	begin: func(k *knowledge) strategy { return newProbes(k, thrift{far: 2, racers: 6, near: 1.15}) },
}

// racedAtLeast is how many plans of a request are raced: a choice and the rule's plan.
const racedAtLeast = 2

// next lists what to measure next; nothing is the end.
func (p *probes) next() []work {
	p.limit, p.rough = make([]float64, len(p.requests)), make([]bool, len(p.requests))
	for i := range p.requests {
		p.limit[i], p.rough[i] = p.far(i), p.isRough(i)
	}
	for _, stage := range []func() []work{p.pipelines, p.wholes, p.races} {
		all := slices.DeleteFunc(stage(), func(w work) bool { return p.tried[w.key()] })
		if len(all) > 0 {
			return all
		}
	}
	return nil
}
