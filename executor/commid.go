package executor

import (
	"fmt"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels"
)

// CommID numbers a communicator. Its members agree on it, and no other communicator of
// the world ever has the same: it is made of a rank and of what that rank has counted.
//
//	bit  63      0; numbers with a 1 are for programs that agree on them by themselves
//	bits 62…42   the rank of the world that drew the number, plus 1
//	bits 41…0    how many it had drawn, from 1 on
//
// 0 is the communicator of all ranks.
type CommID uint64

// drawnBits is the width of the count: at one number each microsecond 50 days' worth.
const drawnBits = 42

// String is like r3.17: the 17th number that rank 3 drew.
func (id CommID) String() string { return flight.CommName(uint64(id)) }

// Draw returns a number for a communicator that this rank leads: one that neither this
// rank nor another one has drawn. Any goroutine may call it.
func (e *Endpoint) Draw() (CommID, error) {
	n := e.drawn.Add(1)
	if n >= 1<<drawnBits {
		return 0, fmt.Errorf("rank %d has drawn %d numbers of communicators; there are no more", e.rank, n-1)
	}
	return drawnBy(e.rank, n), nil
}

func drawnBy(rank levels.Rank, n uint64) CommID { return CommID(rank+1)<<drawnBits | CommID(n) }
