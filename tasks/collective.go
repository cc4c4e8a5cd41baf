package tasks

// Collective names an operation: of a whole communicator in a [Request], of
// one group on one segment in a [Task]. The zero value is invalid.
type Collective uint8

// The collectives.
const (
	_ Collective = iota
	Bcast
	Reduce
	Allreduce
	Allgather
	Gather
	Scatter
	ReduceScatter
	Alltoall
	Barrier
	Scan
	Exscan
	Prefix // a task only: the values before a group go before those of its ranks
	Neighbors
)
