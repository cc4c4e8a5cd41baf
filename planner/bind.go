package planner

import (
	"fmt"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// purpose is the use of a collective. Collectives of different purposes never match.
type purpose string

const (
	userCall    purpose = ""
	splitCall   purpose = "split"
	dupCall     purpose = "dup"
	anyCall     purpose = "any"
	pairCall    purpose = "the counts of an alltoallv"
	tableCall   purpose = "the table of decisions"
	machineCall purpose = "what the machine is like"
	trialCall   purpose = "a trial of plans"
)

// binding compiles a call, and describes it for errors. Calls of the library have a digest of their own.
func (b *base) binding(r tasks.Request, p tasks.Plan, why purpose) (x executor.Binding, err error) {
	x = b.description(r, p)
	asked := r
	asked.InPlace = b.combinesInPlace(r)
	x.Compiled, err = submodules.CompileRequest(asked, b.topology, p, b.comm.Rank(), b.registry)
	if why != userCall {
		x.Borrows = true // it is mostly made for one call
		x.Request = string(why)
		x.Digest = submodules.Digest(string(why), r, b.topology, p)
	}
	if err == nil {
		b.verify(r, p)
	}
	return x, err
}

// combinesInPlace reports whether this rank's program finds its input in the receive buffer. Input that is
// scaled first goes there wherever there is room for it, and needs no scratch. An exscan leaves rank 0's
// buffer as it is.
func (b *base) combinesInPlace(r tasks.Request) bool {
	me, n := b.comm.Rank(), b.topology.Size()
	if !r.Reduces() || r.TakesBlocks() || kernel.Scale(r.Op, r.Type, n) == nil {
		return r.InPlace
	}
	return r.Receives(me) && r.Combines(me, n) > 0
}

// description returns a binding with only the text of a call.
func (b *base) description(r tasks.Request, p tasks.Plan) executor.Binding {
	x := executor.Binding{Request: r.String(), Plan: p.String(), Layout: b.topology.String()}
	if r.Reduces() {
		x.Operation = r.Op.Signature()
	}
	return x
}

// bindRun makes a run of a compiled binding. tally is the name for counting its calls.
func (b *base) bindRun(r tasks.Request, x executor.Binding, tally string, send, recv []byte) (_ *executor.Run, err error) {
	x.Send, x.Recv = send, recv
	if r.Reduces() {
		if x.Kernel, err = kernel.For(r.Op, r.Type); err != nil {
			return nil, fmt.Errorf("%v: %w", r, err)
		}
		x.Scale = kernel.Scale(r.Op, r.Type, b.topology.Size())
		x.User = r.Op.ID() == tasks.OpUser
	}
	b.comm.Endpoint().Adopt() // making one takes long anyway
	x.Tally, x.Trips = b.comm.Endpoint().Tally(tally, x.Plan), r.Coll.BusFactor(b.topology.Size())
	return b.comm.Bind(x)
}
