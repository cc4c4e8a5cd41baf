package submodules

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/tasks"
)

// Catalogue lists a submodule's algorithms, each with the functions of type F to lower tasks by
// it.
type Catalogue[F any] []Entry[F]

// Entry is an algorithm with a function for each of its operations. [Catalogue.Algorithms] fills
// in its Ops.
type Entry[F any] struct {
	Algorithm
	Lower map[tasks.Collective]F
}

// Algorithms returns the algorithms.
func (c Catalogue[F]) Algorithms() []Algorithm {
	all := make([]Algorithm, len(c))
	for i, e := range c {
		all[i] = e.Algorithm
		all[i].Ops = slices.DeleteFunc(tasks.Collectives(), func(op tasks.Collective) bool { _, does := e.Lower[op]; return !does })
	}
	return all
}

// Find returns the lowering of a task's chosen algorithm. If there is nothing the error wraps
// [ErrUnsupported].
func (c Catalogue[F]) Find(call *Call) (lower F, err error) {
	for _, e := range c {
		if lower, ok := e.Lower[call.Kind.Op]; ok && e.Name == call.Algorithm {
			return lower, nil
		}
	}
	return lower, fmt.Errorf("%v by %s: %w", call.Kind.Op, call.Algorithm, ErrUnsupported)
}
