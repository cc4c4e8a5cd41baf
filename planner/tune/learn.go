package tune

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// Learn measures few configurations, and learns the times of others from each of them.
var Learn = &Method{
	name: "learn",
	about: `learns from each measurement what other plans and sizes take,
by a random forest, and measures next what tells most; stops
when little is hoped to be gained by more`,
	begin: func(k *knowledge) strategy { return &learningOn{learning: newLearning(k), on: k} },
}

// learning is the knowledge of [Learn] about some machines: a learner for each collective. Measured
// first are the built-in rule's plans, for a time of every size, and last the plans to be chosen and
// those with a chance to be much faster, see [learn.Learner.Doubt].
type learning struct {
	options learn.Options
	tell    func(text string) // nil: nobody wants to hear
	lessons []*lesson
	many    bool // machines
	rng     *rand.Rand
}

// lesson is the learning about one collective.
type lesson struct {
	learner *learn.Learner
	coder   *learn.Coder
	choices []choice
	points  []arm           // by the learner's point
	at      map[pointOn]int // points
	listed  []job           // to be measured in any case
	open    int             // jobs without an answer yet
	ruled   bool            // the rule's plans were listed
	check   int             // rounds of doubtful choices
}

// choice is a request on a machine.
type choice struct {
	of      *knowledge
	request int
}

// arm is a plan for a choice.
type arm struct {
	choice
	plan tasks.Plan
}

// pointOn names a plan for a request on a machine.
type pointOn struct {
	of  *knowledge
	key string // see pointKey
}

// job is a measurement to make.
type job struct {
	of      *knowledge
	lesson  *lesson
	request tasks.Request
	plan    tasks.Plan
	at      int     // the learner's point
	odd     bool    // the request is of another size than the point's
	usual   bool    // the built-in rule's plan
	prior   float64 // ns, if it is odd
}

// MostChecks bounds the rounds of measurements of doubtful choices of a collective. A choice that turns
// out slow makes place for another one.
const MostChecks = 4

// newLearning begins to learn on machines with equal options of their searches.
func newLearning(machines ...*knowledge) *learning {
	l := &learning{options: machines[0].learn, tell: machines[0].learning, rng: rand.New(rand.NewPCG(machines[0].learn.Seed, 4))}
	by := map[tasks.Collective]*lesson{}
	for _, k := range machines {
		for i, r := range k.requests {
			if by[r.Coll] == nil {
				by[r.Coll] = &lesson{at: map[pointOn]int{}}
				l.lessons = append(l.lessons, by[r.Coll])
			}
			by[r.Coll].choices = append(by[r.Coll].choices, choice{k, i})
		}
	}
	for _, one := range l.lessons {
		one.prepare(l.options)
	}
	l.many = len(machines) > 1
	return l
}

// checkRequests refuses blocks that differ: it doesn't know their plans' thresholds.
func (l *learning) checkRequests() error {
	for _, one := range l.lessons {
		if slices.ContainsFunc(one.choices, func(c choice) bool { return c.of.requests[c.request].Differ() }) {
			return errors.New("method learn knows no blocks that differ; the others but models do")
		}
	}
	return nil
}

// prepare lists a lesson's points, and tells its learner the known times.
func (one *lesson) prepare(o learn.Options) {
	var plans []tasks.Plan
	for _, c := range one.choices {
		for _, of := range c.of.candidates[c.request] {
			if of.Rejected == "" {
				plans = append(plans, of.Plan)
			}
		}
	}
	one.coder = learn.NewCoder(plans, o.Words)
	var points []learn.Point
	var took []float64 // by point, ns; 0: not measured
	for n, c := range one.choices {
		prices, r := c.of.priors(c.request), c.of.requests[c.request]
		for k, of := range c.of.candidates[c.request] {
			if of.Rejected == "" {
				key := pointKey(r, of.Plan)
				one.at[pointOn{c.of, key}] = len(points)
				took = append(took, c.of.known[key].NS)
				points = append(points, learn.Point{Choice: n, Features: one.features(c.of, r, of.Plan), Prior: prices[k]})
				one.points = append(one.points, arm{c, of.Plan})
			}
		}
	}
	one.learner = learn.New(points, o)
	for at, ns := range took {
		one.learner.Learn(at, ns)
	}
	one.learner.Train()
}

func (one *lesson) features(on *knowledge, r tasks.Request, p tasks.Plan) []float64 {
	nodes := on.topology.Nodes()
	return one.coder.Features(nodes, (on.topology.Size()+nodes-1)/nodes, r.Bytes(), p)
}

// pricedMachine returns the machine for priors: the space's, or an assumed one.
func (k *knowledge) pricedMachine() *machine.Machine {
	if k.space.Machine != nil {
		return k.space.Machine
	}
	return machine.Assumed()
}

// priors returns the prices of the candidates of request i, ns. A plan without a price costs as much as
// one like it, or else the geometric mean of all.
func (k *knowledge) priors(i int) []float64 {
	ns := make([]float64, len(k.candidates[i]))
	p, err := price.New(k.pricedMachine(), k.topology, k.requests[i], k.space.Registry)
	if err != nil {
		return ns
	}
	var priced []float64
	for n, c := range k.candidates[i] {
		if c.Rejected == "" {
			if ns[n] = priceLike(p, c.Plan, k.space.Registry); ns[n] > 0 {
				priced = append(priced, ns[n])
			}
		}
	}
	mean := geometricMean(priced)
	for n := range ns {
		if ns[n] == 0 {
			ns[n] = mean
		}
	}
	return ns
}

// take returns the next measurement of a lesson; false: there is none, or none before the open
// ones have answers.
func (l *learning) take(one *lesson) (j job, ok bool) {
	if len(one.listed) == 0 {
		l.list(one)
	}
	if len(one.listed) == 0 {
		return j, false
	}
	j, one.listed = one.listed[0], one.listed[1:]
	one.open++
	return j, true
}

// list lists the next measurements of a lesson: the rule's plans, then the learner's questions, and in
// the end the plans to be chosen.
func (l *learning) list(one *lesson) {
	if !one.ruled {
		one.ruled = true
		for _, c := range one.choices {
			if at, there := one.at[pointOn{c.of, pointKey(c.of.requests[c.request], c.of.rules[c.request])}]; there {
				one.want(at, true)
			}
		}
		if len(one.listed) > 0 {
			return
		}
	}
	if one.check == 0 && !one.learner.Converged() {
		if next, ok := one.learner.Next(); ok {
			one.listed = append(one.listed, l.ask(one, next))
			return
		}
	}
	if one.open > 0 {
		return // their answers may change the choice
	}
	one.learner.Train()
	for ; one.check < MostChecks && len(one.listed) == 0; one.check++ {
		for n := range one.choices {
			if at, ok := one.learner.Doubt(n); ok {
				one.want(at, false)
			}
		}
		if len(one.listed) == 0 {
			break
		}
	}
}

// want lists a point, unless it is measured.
func (one *lesson) want(at int, usual bool) {
	if a := one.points[at]; one.learner.Known(at) == 0 {
		one.listed = append(one.listed, job{of: a.of, lesson: one, request: a.of.requests[a.request], plan: a.plan, at: at, usual: usual})
	}
}

// hear tells learners the outcome of jobs.
func (l *learning) hear(jobs []job) {
	for _, j := range jobs {
		one := j.lesson
		one.open--
		m, known := j.of.known[pointKey(j.request, j.plan)]
		switch {
		case j.odd:
			one.learner.Free(j.at)
			if known {
				one.learner.Hear(one.features(j.of, j.request, j.plan), j.prior, m.NS)
			}
		case known:
			one.learner.Learn(j.at, m.NS)
		default:
			one.learner.Fail(j.at) // nobody lowers it
		}
	}
}

// ask returns the measurement a learner asks for, and tells it to [Search.Learning].
func (l *learning) ask(one *lesson, next learn.Next) job {
	a := one.points[next.At]
	j := job{of: a.of, lesson: one, request: a.of.requests[a.request], plan: a.plan, at: next.At}
	if next.Odd {
		j = l.resize(j)
	}
	if l.tell != nil {
		on := ""
		if l.many {
			on = fmt.Sprintf(" on %v", j.of.sizes)
		}
		l.tell(fmt.Sprintf("%v%s by %v: %s; over all %.3g, %d not measured", j.request, on, j.plan, next.Why, next.Sum, next.Left))
	}
	return j
}

// resize returns a measurement with a drawn size in place of a point's: from three quarters to one
// and a half times that, whole elements, and not the same (ACCLAiM, section IV-B). Without room
// for another size it is the point's.
func (l *learning) resize(j job) job {
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
	if _, known := j.of.known[pointKey(r, plan)]; known {
		return j
	}
	p, err := price.New(j.of.pricedMachine(), j.of.topology, r, j.of.space.Registry)
	if err != nil {
		return j
	}
	prior := priceLike(p, plan, j.of.space.Registry)
	if prior == 0 {
		return j
	}
	j.request, j.plan, j.odd, j.prior = r, plan, true, prior
	return j
}

// leastUnmeasured times the fastest measured plan's time is the least estimate for others: no plan is
// chosen by a mere prediction.
const leastUnmeasured = 1.01

// learningOn is the strategy of one of the machines.
type learningOn struct {
	*learning
	on      *knowledge
	pending []job // from the last call of next
}

// next lists measurements of each collective without enough of them.
func (l *learningOn) next() (all []work) {
	l.hear(l.pending)
	l.pending = nil
	for _, one := range l.lessons {
		for j, ok := l.take(one); ok; j, ok = l.take(one) {
			l.pending = append(l.pending, j)
			all = append(all, work{request: j.request, plan: j.plan, usual: j.usual, beside: l.on.collective, kind: Collectives})
			if len(one.listed) == 0 {
				break
			}
		}
	}
	return all
}

func (l *learningOn) estimate(i int, plan tasks.Plan) (c table.Candidate, ok bool) {
	if c, ok = l.on.measuredTime(i, plan); ok {
		return c, true
	}
	point := pointOn{l.on, pointKey(l.on.requests[i], plan)}
	for _, one := range l.lessons {
		if at, there := one.at[point]; there {
			c.NS, c.From = one.learner.Predict(at), table.FromPredicted
			known := c.NS > 0
			c.NS = max(c.NS, leastUnmeasured*one.learner.Least(at))
			return c, known
		}
	}
	return c, false
}

// geometricMean returns the geometric mean of numbers above 0; 0 if there are none.
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
