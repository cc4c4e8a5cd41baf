package choose

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Question is a question for choosers: a request on a topology. It is made once, and keeps
// facts for several choosers. One goroutine uses it at a time.
type Question struct {
	*builtin.Asked
	Registry submodules.Registry
	Links    string     // between nodes; empty: unknown
	Forced   tasks.Plan // the forced part of the plan, see [Forced]
	ruled    *Ruled     // with Forced; nil: the rule wasn't asked yet
	prices   *Prices    // of a machine, with Forced; nil: none was asked yet
}

// Ask returns the question for a request on a topology.
func Ask(r tasks.Request, t *levels.Topology, reg submodules.Registry, links string) (*Question, error) {
	if err := r.Validate(t.Size()); err != nil {
		return nil, fmt.Errorf("%v: %w", r, err)
	}
	return &Question{Asked: builtin.Ask(r, t), Registry: reg, Links: links}, nil
}

// Chooser is a way to choose plans. What it keeps of a question changes no later answer.
type Chooser interface {
	// Choose answers a question. All ranks get equal answers to equal questions.
	Choose(q *Question) (Answer, error)
}

// Answer is a chooser's answer to a question.
type Answer interface {
	// Plan returns the plan. Without one the next chooser is asked.
	Plan() (p tasks.Plan, known bool)
	// Explain adds lines with the reasons.
	Explain(text *strings.Builder)
}

// Timed is an [Answer] with the time of a call of the plan, ns, if it is known.
type Timed interface {
	Time() (ns float64, known bool)
}

// Final is an [Answer] that may exclude trials: somebody wants the plan, or has measured it for this
// very request.
type Final interface {
	IsFinal() bool
}

// Chain is choosers in their order. The last one always has a plan.
type Chain []Chooser

// Choose asks one chooser after the other until one has a plan. A forced part that the plan chosen without
// it has anyway changes nothing. A plan with words unknown to the question's registry is an error.
func (c Chain) Choose(q *Question) (Decision, error) {
	var d Decision
	for i, chooser := range c {
		if q.isNarrowed() && len(d.Answers) == 1 {
			if free, err := c[i:].Choose(q.open()); err == nil {
				if p, ok := q.meets(free.Plan); ok {
					return Decision{p, q.Forced, append(d.Answers, free.Answers...)}, nil
				}
			}
		}
		a, err := chooser.Choose(q)
		if err != nil {
			return d, fmt.Errorf("%v: %w", q.Request(), err)
		}
		d.Answers = append(d.Answers, a)
		if p, known := a.Plan(); known {
			d.Plan = p
			break
		}
	}
	d.Forced = q.Forced
	if err := q.Registry.Check(d.Plan); err != nil {
		return d, fmt.Errorf("%v: %w", q.Request(), err)
	}
	return d, nil
}

// Decision is a plan with the answers of choosers, up to the one that chose it.
type Decision struct {
	Plan    tasks.Plan
	Forced  tasks.Plan // its forced part
	Answers []Answer
}

// find returns the answer of a kind; the zero value: nobody gave one.
func find[A Answer](d *Decision) (found A) {
	for _, a := range d.Answers {
		if one, is := a.(A); is {
			return one
		}
	}
	return found
}

// FromTable returns a table's answer; nil: none was asked.
func (d *Decision) FromTable() *Consulted { return find[*Consulted](d) }

// Predicted returns the time of a call as the plan's chooser predicts it, ns. It isn't known of a forced
// plan, nor of one from the built-in rule alone.
func (d *Decision) Predicted() (ns float64, known bool) {
	for _, a := range d.Answers {
		if t, is := a.(Timed); is {
			if ns, known = t.Time(); known {
				return ns, true
			}
		}
	}
	return 0, false
}
