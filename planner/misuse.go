package planner

import "errors"

// Errors of calls with a missing argument. Functions without an error to return panic
// with them.
var (
	errNoContext    = errors.New("the context is nil; allowed is any other, context.Background() for one")
	errNoComm       = errors.New("the communicator is nil or zero; allowed are those that Join, Local, Run, Split and Dup make, and Split makes none for NoColor")
	errNoCollective = errors.New("the collective is nil or zero; allowed are those that PrepareBcast, PrepareAllreduce and the others return without an error")
	errNoPending    = errors.New("nothing was started: wait for what Start returns without an error")
	errNoTransfer   = errors.New("nothing was started: wait for what StartSend and StartRecv return without an error")
	errNoFunction   = errors.New("the function is nil; it is what each rank runs")
	errNoTopology   = errors.New("the topology is nil or zero; allowed are those that package levels makes")
)
