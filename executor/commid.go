package executor

import (
	"fmt"

	"github.com/tierflow/tierflow/executor/wire"
)

// CommID numbers a communicator, see [wire.CommID].
type CommID = wire.CommID

// Draw returns a number for a communicator that this rank leads: one that neither this
// rank nor another one has drawn. Any goroutine may call it.
func (e *Endpoint) Draw() (CommID, error) {
	n := e.drawn.Add(1)
	if n >= 1<<wire.DrawnBits {
		return 0, fmt.Errorf("rank %d has drawn %d numbers of communicators; there are no more", e.rank, n-1)
	}
	return wire.DrawnBy(e.rank, n), nil
}
