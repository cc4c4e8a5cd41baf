package choose_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// A chooser that knows one collective.
type barriers struct{}

func (barriers) Choose(q *choose.Question) (choose.Answer, error) {
	return answer{q.Request().Coll}, nil
}

type answer struct{ coll tasks.Collective }

func (a answer) Plan() (p tasks.Plan, known bool) {
	if a.coll != tasks.Barrier {
		return p, false // the next one is asked
	}
	p, err := tasks.ParsePlan("shape=flat-ar,fs=all,w=1,iar=nbc/dissemination")
	return p, err == nil
}

func (a answer) Explain(text *strings.Builder) { text.WriteString("  barriers: they know it\n") }

// A way to choose is a type with one method. It stands before the built-in rule.
func Example() {
	on, err := levels.Parse("4x1")
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range []tasks.Request{{Coll: tasks.Barrier}, {Coll: tasks.Bcast, Type: tasks.Float32, Count: 1}} {
		q, err := choose.Ask(r, on, all.Submodules(), "")
		if err != nil {
			log.Fatal(err)
		}
		d, err := choose.Chain{barriers{}, choose.Rule{}}.Choose(q)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Coll, d.Plan)
		fmt.Println(strings.Split(d.Explain(q.Asked, q.Registry), "\n")[2])
	}
	// Output:
	// barrier shape=flat-ar,fs=all,w=1,iar=nbc/dissemination
	//   barriers: they know it
	// bcast shape=han,fs=all,w=4,i=nbc/linear
	//   rule: shape=han: shared memory inside nodes, messages only between leaders
}
