package planner

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/levels"
)

// What is said of a call with something that isn't there. Functions without an error
// to return panic with it.
var (
	errNoContext    = errors.New("the context is nil; allowed is any other, context.Background() for one")
	errNoComm       = errors.New("the communicator is nil or zero; allowed are those that Join, Local, Run, Split and Dup make, and Split makes none for NoColor")
	errNoCollective = errors.New("the collective is nil or zero; allowed are those that Bcast, Allreduce and the others return without an error")
	errNoPending    = errors.New("nothing was started: wait for what Start returns without an error")
	errNoTransfer   = errors.New("nothing was started: wait for what StartSend and StartRecv return without an error")
	errNoFunction   = errors.New("the function is nil; it is what each rank runs")
	errNoTopology   = errors.New("the topology is nil or zero; allowed are those that package levels makes")
)

// made is an error unless a function of this package made c.
func (c *Comm) made() error {
	if c == nil || c.comm == nil {
		return errNoComm
	}
	c.world.RefuseOperations() // before any lock is taken
	return nil
}

// mustBeMade is made for methods that can't return an error.
func (c *Comm) mustBeMade() {
	if c == nil || c.comm == nil {
		panic(errNoComm)
	}
}

// usable is an error if a call can't begin: without a context, or a communicator.
func (c *Comm) usable(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return c.made()
}

// unusable is why a collective can't begin to run: there is none, or else no context.
func (c *Collective) unusable(what string) error {
	if c == nil || c.run == nil {
		return fmt.Errorf("%s: %w", what, errNoCollective)
	}
	return fmt.Errorf("%s %v: %w", what, c.request, errNoContext)
}

func (c *Collective) mustBeMade() {
	if c == nil || c.run == nil {
		panic(errNoCollective)
	}
}

// rank is a rank that a caller gave, if it is one of c. It is looked at before it is
// cut to the bits of a [levels.Rank].
func (c *Comm) rank(what string, n int) (levels.Rank, error) {
	if n < 0 || n >= c.Size() {
		return 0, fmt.Errorf("%s %d: ranks are 0 to %d", what, n, c.Size()-1)
	}
	return levels.Rank(n), nil
}
