package wire

import (
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels"
)

// CommID numbers a communicator. Its members agree on it, and no other communicator of
// the world ever has the same: it is made of a rank and of a count of its own.
//
//	bit  63      0; numbers with a 1 are for programs that agree on them by themselves
//	bits 62…42   the rank of the world that drew the number, plus 1
//	bits 41…0    how many it had drawn, from 1 on
//
// 0 is the communicator of all ranks.
type CommID uint64

// DrawnBits is the width of the count: at one number each microsecond 50 days' worth.
const DrawnBits = 42

// String is like r3.17: the 17th number drawn by rank 3.
func (id CommID) String() string { return flight.CommName(uint64(id)) }

// DrawnBy returns the n-th number drawn by a rank, from 1 on.
func DrawnBy(rank levels.Rank, n uint64) CommID { return CommID(rank+1)<<DrawnBits | CommID(n) }
