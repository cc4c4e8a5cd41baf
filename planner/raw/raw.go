// Package raw is what libraries for other languages, tools and tests need of a communicator beside the calls of package planner:
// requests without an element's type, communicators that ranks make by themselves, configurations of joining, and what lies below.
//
// It makes no promise: names and behaviour change with what needs them. Programs in Go use package planner.
package raw

import (
	"context"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/internal/cache"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

var calls = inside.Take[planner.Comm, planner.Collective, planner.Options]()

// JoinAs is [planner.Join] with a configuration from elsewhere.
func JoinAs(ctx context.Context, cfg join.Config, o *planner.Options) (*planner.Comm, error) {
	return calls.JoinAs(ctx, cfg, o)
}

// Seams are options for libraries of other languages, and for tests: NoPeerReads keeps processes of a node from copying straight from each other's memory, as if the
// kernel forbade it; Progress is called again and again by a goroutine waiting for a collective; Elsewhere
// tells of calls of another library, such as MPI, that the program is in.
type Seams = inside.Seams

// SeamsOf returns those of some options, to be set before these are used.
func SeamsOf(o *planner.Options) *Seams { return calls.Seams(o) }

// Decision is a chosen plan with all the reasons for it.
type Decision = inside.Decision

// Inspect is [planner.Explain] with the parts of the text as values.
func Inspect(r tasks.Request, t *levels.Topology, o *planner.Options) (*Decision, error) {
	return calls.Inspect(r, t, o)
}

// Usage is the work of one rank of this process since it entered its job, and its present state. It counts all communicators
// of the rank together.
type Usage = inside.Usage

// Usages returns the usage of each rank in this process's open jobs, by world and
// then by rank. It disturbs no call. Package metrics serves it to Prometheus.
func Usages() []Usage { return calls.Usages() }

// Canonical checks a request and clears fields without use for its collective on this rank.
// [tasks.Request.Buffers] of the result are the lengths of this rank's buffers in [Prepare].
func Canonical(c *planner.Comm, r tasks.Request) (tasks.Request, error) {
	return calls.Canonical(c, r)
}

// Prepare is [planner.PrepareAllreduce] and the others for a caller without the elements' type at
// compile time, such as a library for another language. Buffers have the lengths of
// [tasks.Request.Buffers] for this rank, nil for none. Fields of the request that its collective
// doesn't use, such as the root of an allreduce, are ignored. In place is up to the request: the
// only buffer is then the receive buffer, or the send buffer of a scatter's root. Alltoallv and the
// other collectives with an exchange of counts need these in the request.
func Prepare(ctx context.Context, c *planner.Comm, r tasks.Request, send, recv []byte) (*planner.Collective, error) {
	return calls.Prepare(c, ctx, r, send, recv)
}

// PrepareNamed is [Prepare] of a collective with a name. The name must be the same on all
// ranks: else they get [planner.ErrMismatch], and its text has the names. So a program with many collectives
// of equal requests, for different things, hears of it when ranks confuse them.
//
// like is nil, or a collective of the same communicator and request. The two share a program then.
func PrepareNamed(c *planner.Comm, name string, r tasks.Request, send, recv []byte, like *planner.Collective) (*planner.Collective, error) {
	return calls.PrepareNamed(c, name, r, send, recv, like)
}

// Ready compiles a request for later calls of [Run], and keeps the program. It sends
// no message, unless [planner.Options.Effort] is [planner.EffortMeasure].
func Ready(ctx context.Context, c *planner.Comm, r tasks.Request) error {
	return calls.Ready(c, ctx, r)
}

// Run is [Prepare] and a run in one call. The compiled program is kept for the next
// call of an equal request: from the second on it allocates nothing.
func Run(ctx context.Context, c *planner.Comm, r tasks.Request, send, recv []byte) error {
	return calls.Run(c, ctx, r, send, recv)
}

// Rebind gives a collective other buffers of the same lengths, between two runs.
func Rebind(col *planner.Collective, send, recv []byte) error {
	return calls.Rebind(col, send, recv)
}

// Explain is [planner.Collective.Explain] of a request, without buffers.
func Explain(c *planner.Comm, r tasks.Request) (string, error) { return calls.Explain(c, r) }

// Pending is what was started, and has to be waited for. Done reports whether it has ended on this rank, and Wait would return at
// once. Wait must be called once. If its context is cancelled first, the communicator breaks on all ranks.
type Pending = inside.Pending

// Exchange is [StartExchange] and Wait in one call.
func Exchange(ctx context.Context, c *planner.Comm, coll tasks.Collective, root int, give, get [][]byte) error {
	return calls.Exchange(c, ctx, coll, root, give, get)
}

// StartExchange begins a gather, scatter or alltoall of blocks whose sizes only sender and receiver know: MPI_Gatherv is one, and
// there the root alone knows all of them. give[i] is this rank's block for rank i, and get[i] the memory for
// rank i's block. coll is [tasks.Gather] or [tasks.Scatter], with root alone getting or
// giving, or [tasks.Alltoall], without a root. A rank may leave out the list it has no use for.
// All ranks must make it in the same order as other collectives. Blocks must not be
// touched before it has ended.
//
// A block longer or shorter than expected is an error on the receiving rank. In
// [Exchange] all other blocks arrive then. A started exchange
// breaks the communicator if the expected block was a long one.
func StartExchange(ctx context.Context, c *planner.Comm, coll tasks.Collective, root int, give, get [][]byte) (Pending, error) {
	return calls.StartExchange(c, ctx, coll, root, give, get)
}

// DrawID returns a number for [Sub], never that of another communicator. One
// rank draws it and tells the others.
func DrawID(c *planner.Comm) (uint64, error) { return calls.DrawID(c) }

// Sub is [planner.Comm.Split] for ranks that know their group already: it is local. The
// communicator has the given ranks of c, in their order, and this rank must be one of them.
// All of them must give the same ranks, and the same number, drawn by one of them
// ([DrawID]).
func Sub(c *planner.Comm, id uint64, ranks []int) (*planner.Comm, error) {
	return calls.Sub(c, id, ranks)
}

// Under returns the executor's communicator and the registry of submodules behind c,
// for packages with programs of their own. It is an error if no function of package planner made c.
func Under(c *planner.Comm) (*executor.Comm, submodules.Registry, error) { return calls.Under(c) }

// Counters returns the counts of this rank's work on the communicator.
func Counters(c *planner.Comm) executor.Counters { return calls.Counters(c) }

// Kinds of files kept in the user's cache folder.
const (
	KeptMachines = cache.Machines
	KeptTables   = cache.Tables
)

// KeptFolder returns the folder of measurements kept by jobs, [KeptMachines] or
// [KeptTables]. Without a home it is an error.
func KeptFolder(kind string) (string, error) { return cache.Folder(kind) }

// TableFile names the file of the decision table for jobs of the same processes, unless they are
// told of another one. It is empty on ranks but rank 0, and without a place for it.
func TableFile(c *planner.Comm) string { return calls.TableFile(c) }

// KeepTable writes a table to [TableFile], for later jobs on such hosts. It
// appears whole or not at all, and only this user reads it.
func KeepTable(c *planner.Comm, t *table.Table) error { return calls.KeepTable(c, t) }
