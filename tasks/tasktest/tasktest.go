// Package tasktest makes the questions that tests ask: requests, topologies and plans of text.
package tasktest

import (
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// failer is what a test fails by: a *testing.T, a *rapid.T or a double of one.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// Topology parses a topology.
func Topology(t failer, spec string) *levels.Topology {
	t.Helper()
	on, err := levels.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// Plan parses a plan.
func Plan(t failer, text string) tasks.Plan {
	t.Helper()
	p, err := tasks.ParsePlan(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Request is a collective of so many bytes in a rank's buffer, or in a block. They are
// float32, reductions are sums, and a barrier has none.
func Request(coll tasks.Collective, bytes int64) tasks.Request {
	if coll == tasks.Barrier {
		return tasks.Request{Coll: coll}
	}
	r := tasks.Request{Coll: coll, Type: tasks.Float32, Count: bytes / 4}
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	return r
}

// Requests are all pairs of collectives, separated by commas, and sizes in bytes; one barrier.
// It panics if there is no such collective.
func Requests(colls string, sizes ...int64) (all []tasks.Request) {
	for _, name := range strings.Split(colls, ",") {
		coll, err := tasks.ParseCollective(name)
		if err != nil {
			panic(err)
		}
		if coll == tasks.Barrier {
			all = append(all, Request(coll, 0))
			continue
		}
		for _, bytes := range sizes {
			all = append(all, Request(coll, bytes))
		}
	}
	return all
}
