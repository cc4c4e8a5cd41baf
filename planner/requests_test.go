package planner_test

import (
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// requests are all pairs of collectives and sizes, which are float32.
func requests(colls string, sizes ...int64) (all []tasks.Request) {
	for _, name := range strings.Split(colls, ",") {
		coll, err := tasks.ParseCollective(name)
		if err != nil {
			panic(err)
		}
		for _, n := range sizes {
			r := tasks.Request{Coll: coll, Count: n / 4, Type: tasks.Float32}
			if r.Reduces() {
				r.Op = tasks.Sum
			}
			if coll == tasks.Barrier {
				r = tasks.Request{Coll: coll}
			}
			all = append(all, r)
			if coll == tasks.Barrier {
				break
			}
		}
	}
	return all
}
