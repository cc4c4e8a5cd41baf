package submodules

import (
	"fmt"
	"hash/fnv"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Compiled is a request compiled for one rank: all that a run needs, except the buffers.
type Compiled struct {
	// Whole runs Passes times, each Stride bytes further into the buffers; then
	// Rest runs once, if it is not nil. Programs are those of this rank.
	Whole, Rest *Program
	Passes      int64
	Stride      int64
	// Digest is equal on ranks with the same request, plan and topology, see [Digest].
	Digest uint32
}

// CompileRequest compiles a request of any length for one rank.
func CompileRequest(r tasks.Request, t *levels.Topology, p tasks.Plan, rank levels.Rank, reg Registry) (c Compiled, err error) {
	cut, err := tasks.CutRequest(r, t, p)
	if err != nil {
		return c, err
	}
	c.Digest = Digest("", r, t, p)
	if cut.Passes > 0 {
		c.Passes, c.Stride = cut.Passes, cut.Whole.Bytes()
		if c.Whole, err = CompileFor(cut.Whole, cut.On, p, rank, reg); err != nil {
			return c, err
		}
	}
	c.Rest, err = CompileFor(cut.Rest, cut.On, p, rank, reg)
	return c, err
}

// Digest returns a number to tell calls apart by: it depends on their purpose, request, plan and
// topology. Ranks compare it with the first message of a run.
func Digest(purpose string, r tasks.Request, t *levels.Topology, p tasks.Plan) uint32 {
	operation := ""
	if r.Reduces() {
		operation = r.Op.Signature()
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%q|%v|%s|%v|%v", purpose, r, operation, p, t)
	return h.Sum32()
}
