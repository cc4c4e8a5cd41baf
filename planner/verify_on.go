//go:build invariants

package planner

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/tasks"
)

// verifySteps bounds the programs that verify checks.
const verifySteps = 5000

// proof is what the programs of a call depend on; the registry is the same in all of a process.
type proof struct {
	request        tasks.Request
	plan, topology string
}

// proofs has what [check.Request] says of each call, func() error by proof. The answer is about all ranks,
// and all of a process ask: it is worked out once.
var proofs sync.Map

// verify panics unless the programs of all ranks are right.
func (b *base) verify(r tasks.Request, p tasks.Plan) {
	of, _ := proofs.LoadOrStore(proof{r, p.String(), b.topology.String()}, sync.OnceValue(func() error {
		_, err := check.Request(r, b.topology, p, b.registry, verifySteps)
		return err
	}))
	if err := of.(func() error)(); err != nil && !errors.Is(err, check.ErrTooLarge) {
		panic(fmt.Sprintf("planner: compiled wrong: %v", err))
	}
}
