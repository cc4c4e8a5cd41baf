package tune

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// Learn measures few configurations, and learns from each of them what others take.
var Learn = &Method{
	name: "learn",
	about: `learns from each measurement what other plans and sizes take,
by a random forest, and measures next what tells most; stops
when little is hoped to be gained by more`,
	begin: func(k *knowledge) strategy { return newLearning(k) },
}

// learning is the strategy of [Learn]: a learner for each collective. Measured first are the
// built-in rule's plans, so that every size has a time, and last what would be chosen, until all
// that is has been measured.
type learning struct {
	*knowledge
	lessons []*lesson
	rng     *rand.Rand
}

// lesson is what is learned of one collective.
type lesson struct {
	learner *learn.Learner
	coder   *learn.Coder
	choices []int          // requests
	points  []arm          // by the learner's point
	at      map[string]int // points by pointKey
	pending []job          // what was asked for, and has no answer yet
	ruled   bool           // the rule's plans were asked for
	check   int            // rounds in which choices were asked for
}

// arm is a plan for a request.
type arm struct {
	request int
	plan    tasks.Plan
}

// job is a measurement that was asked for.
type job struct {
	request tasks.Request
	plan    tasks.Plan
	at      int // the learner's point; −1: a size that is none
	prior   float64
}

// mostChecks bounds how often the choices of a collective are measured because nobody has.
// A choice that turns out slow makes place for another one.
const mostChecks = 4

func newLearning(k *knowledge) *learning {
	l := &learning{knowledge: k, rng: rand.New(rand.NewPCG(k.learn.Seed, 4))}
	by := map[tasks.Collective]*lesson{}
	for i, r := range k.requests {
		if by[r.Coll] == nil {
			by[r.Coll] = &lesson{at: map[string]int{}}
			l.lessons = append(l.lessons, by[r.Coll])
		}
		by[r.Coll].choices = append(by[r.Coll].choices, i)
	}
	for _, one := range l.lessons {
		l.prepare(one)
	}
	return l
}

// prepare lists a lesson's points, and tells its learner what is known of them.
func (l *learning) prepare(one *lesson) {
	var plans []tasks.Plan
	for _, i := range one.choices {
		for _, c := range l.candidates[i] {
			if c.Rejected == "" {
				plans = append(plans, c.Plan)
			}
		}
	}
	one.coder = learn.NewCoder(plans, l.learn.Words)
	var points []learn.Point
	for choice, i := range one.choices {
		prices := l.priors(i)
		for k, c := range l.candidates[i] {
			if c.Rejected == "" {
				one.at[pointKey(l.requests[i], c.Plan)] = len(points)
				points = append(points, learn.Point{Choice: choice, Features: l.features(one, l.requests[i], c.Plan), Prior: prices[k]})
				one.points = append(one.points, arm{i, c.Plan})
			}
		}
	}
	one.learner = learn.New(points, l.learn)
	for at, a := range one.points {
		if m, known := l.known[pointKey(l.requests[a.request], a.plan)]; known {
			one.learner.Learn(at, m.NS)
		}
	}
	one.learner.Train()
}

func (l *learning) features(one *lesson, r tasks.Request, p tasks.Plan) []float64 {
	nodes := l.topology.Nodes()
	return one.coder.Features(nodes, (l.topology.Size()+nodes-1)/nodes, r.Bytes(), p)
}

// machine returns the one whose prices are priors: the space's, or one that nobody has measured.
func (l *learning) machine() *machine.Machine {
	if l.space.Machine != nil {
		return l.space.Machine
	}
	return machine.Assumed()
}

// priors returns what the candidates of request i cost, ns. What has no price costs what is like
// it, or else the geometric mean of all.
func (l *learning) priors(i int) []float64 {
	ns := make([]float64, len(l.candidates[i]))
	p, err := price.New(l.machine(), l.topology, l.requests[i])
	if err != nil {
		return ns
	}
	var priced []float64
	for k, c := range l.candidates[i] {
		if c.Rejected == "" {
			if ns[k] = priceLike(p, c.Plan, l.space.Registry); ns[k] > 0 {
				priced = append(priced, ns[k])
			}
		}
	}
	mean := geometricMean(priced)
	for k := range ns {
		if ns[k] == 0 {
			ns[k] = mean
		}
	}
	return ns
}

// next lists a measurement for each collective that is not learned yet.
func (l *learning) next() (all []work) {
	for _, one := range l.lessons {
		one.hear(l)
		jobs := l.jobs(one)
		one.pending = jobs
		for _, j := range jobs {
			all = append(all, work{
				request: j.request, plan: j.plan, usual: !one.ruled, beside: l.collective, kind: Collectives,
			})
		}
		one.ruled = true
	}
	return all
}

// hear tells the learner what came out of the last measurements.
func (one *lesson) hear(l *learning) {
	for _, j := range one.pending {
		m, known := l.known[pointKey(j.request, j.plan)]
		switch {
		case known && j.at >= 0:
			one.learner.Learn(j.at, m.NS)
		case known:
			one.learner.Hear(l.features(one, j.request, j.plan), j.prior, m.NS)
		case j.at >= 0:
			one.learner.Fail(j.at) // nobody lowers it
		}
	}
}

// jobs lists what to measure next of a collective.
func (l *learning) jobs(one *lesson) (all []job) {
	add := func(at int) {
		a := one.points[at]
		if one.learner.Known(at) == 0 {
			all = append(all, job{request: l.requests[a.request], plan: a.plan, at: at})
		}
	}
	if !one.ruled {
		for _, i := range one.choices {
			if at, there := one.at[pointKey(l.requests[i], l.rules[i])]; there {
				add(at)
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	if one.check == 0 && !one.learner.Converged() {
		if next, ok := one.learner.Next(); ok {
			return []job{l.ask(one, next)}
		}
	}
	one.learner.Train()
	for ; one.check < mostChecks && len(all) == 0; one.check++ {
		for choice := range one.choices {
			if best := one.learner.Best(choice); best >= 0 {
				add(best)
			}
		}
		if len(all) == 0 {
			break
		}
	}
	return all
}

// ask returns the measurement that a learner asks for, and tells whoever wants to hear.
func (l *learning) ask(one *lesson, next learn.Next) job {
	a := one.points[next.At]
	j := job{request: l.requests[a.request], plan: a.plan, at: next.At}
	if next.Odd {
		j = l.odd(j)
	}
	if l.learning != nil {
		l.learning(fmt.Sprintf("%v by %v: %s; over all %.3g, %d not measured", j.request, j.plan, next.Why, next.Sum, next.Left))
	}
	return j
}

// odd returns a measurement with a drawn size in place of a point's: from three quarters to one
// and a half times that, whole elements, and not the same (ACCLAiM, section IV-B). Without room
// for another size it is the point's.
func (l *learning) odd(j job) job {
	n := j.request.Count
	least, most := (3*n+3)/4, (3*n-1)/2
	if !j.request.Coll.HasData() || most-least < 2 || j.request.Differ() {
		return j
	}
	r := j.request
	for r.Count == n {
		r.Count = least + l.rng.Int64N(most-least+1)
	}
	plan := table.Canonical(j.plan, r.Bytes())
	if _, known := l.known[pointKey(r, plan)]; known {
		return j
	}
	p, err := price.New(l.machine(), l.topology, r)
	if err != nil {
		return j
	}
	prior := priceLike(p, plan, l.space.Registry)
	if prior == 0 {
		return j
	}
	return job{request: r, plan: plan, at: -1, prior: prior}
}

// unseen times the fastest measured plan's time is the least that another plan is given: what
// is only thought to be faster is not chosen.
const unseen = 1.01

func (l *learning) estimate(i int, plan tasks.Plan) (c table.Candidate, ok bool) {
	if c, ok = l.measuredTime(i, plan); ok {
		return c, true
	}
	r := l.requests[i]
	for _, one := range l.lessons {
		if at, there := one.at[pointKey(r, plan)]; there {
			c.NS, c.From = one.learner.Predict(at), table.FromPredicted
			known := c.NS > 0
			c.NS = max(c.NS, unseen*one.learner.Least(at))
			return c, known
		}
	}
	return c, false
}

// geometricMean is that of numbers above 0; 0 if there are none.
func geometricMean(all []float64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += math.Log2(x)
	}
	if len(all) == 0 {
		return 0
	}
	return math.Exp2(sum / float64(len(all)))
}
