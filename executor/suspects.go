package executor

import (
	"errors"
	"slices"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// grace is how long the control plane has to explain a suspicion.
const grace = time.Second

// addSuspect notes a rank as suspect until the control plane says more. number is that of its link; 0 with
// c, where nothing reads it. An error that is no sign of a death, such as a forged record, needs no more.
// The lock is held.
func (l *losses) addSuspect(c *Comm, rank levels.Rank, number uint32, err error) {
	if _, known := errors.AsType[interface {
		error
		IsNoDeath() bool
	}](err); known {
		l.suspects = slices.Insert(l.suspects, 0, suspect{c, rank, err, time.Now().Add(-grace), number})
		return
	}
	l.suspects = append(l.suspects, suspect{c, rank, err, time.Now(), number})
}
