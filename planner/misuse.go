package planner

import (
	"errors"

	"github.com/tierflow/tierflow/planner/internal/inside"
)

// Errors of calls with a missing argument. Functions without an error to return panic
// with them.
var (
	errNoContext    = inside.ErrNoContext
	errNoComm       = errors.New("the communicator is nil or zero; allowed are those that Join, Local, Run, Split and Dup make, and Split makes none for NoColor")
	errNoCollective = errors.New("the collective is nil or zero; allowed are those that PrepareBcast, PrepareAllreduce and the others return without an error")
	errNoPending    = errors.New("nothing was started: wait for what Start returns without an error")
	errNoTransfer   = errors.New("nothing was started: wait for what StartSend and StartRecv return without an error")
	errNoTopology   = errors.New("the topology is nil or zero; allowed are those that package levels makes")
)
