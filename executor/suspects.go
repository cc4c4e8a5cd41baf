package executor

import (
	"errors"
	"slices"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// grace is how long the control plane has to explain what made a rank suspect.
const grace = time.Second

// addSuspect notes a rank as suspect, until the control plane says more. An error that is no
// sign of a death, such as a forged record, needs no more. The lock is held.
func (e *Endpoint) addSuspect(c *Comm, rank levels.Rank, err error) {
	number, _ := e.linkNumber(rank)
	if _, known := errors.AsType[interface {
		error
		IsNoDeath() bool
	}](err); known {
		e.suspects = slices.Insert(e.suspects, 0, suspect{c, rank, err, time.Now().Add(-grace), number})
		return
	}
	e.suspects = append(e.suspects, suspect{c, rank, err, time.Now(), number})
}
