package tune

import "slices"

// Tasks measures tasks by themselves and predicts all plans and sizes from that. Races tell
// apart what predictions don't. With [RacesAlways] it runs some plans once, predicts the
// others from them, and runs the best again.
var Tasks = &Method{
	name: "tasks", last: racedAtLeast,
	about: `measures tasks by themselves, on some sizes of segments, and
at what pace they follow each other; predicts every plan and
size from that, and runs in turns what predictions don't tell
apart; measures nothing near what is twice as slow as the best`,
	begin: func(k *knowledge) strategy { return byTasks(k, thrift{far: 2, racers: 6, near: 1.15, close: 1.2}) },
}

// byTasks returns the strategy of a tasks method.
func byTasks(k *knowledge, t thrift) strategy {
	if k.raceWhen == RacesAlways {
		return newProbes(k, t)
	}
	return newPredictor(k, t)
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
