package fixed

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Library is one with known decisions.
type Library struct {
	Name   string // in one word, as commands take it
	Doc    string // in words
	decide func(q *question) Decision
}

// Decision is a library's answer to a request.
type Decision struct {
	Plan    tasks.Plan
	Theirs  string // the library's name for it
	Closest string // the plan's stand-in for something missing in tierflow; empty: nothing is
}

// libraries are all known ones.
var libraries = []Library{
	{"openmpi", "Open MPI's tuned, without hierarchy", decideTuned},
	{"han", "Open MPI's HAN, with tuned in nodes and libnbc between them", han},
	{"mpich", "MPICH's ch4, with leaders where it has any", mpich},
}

// Libraries lists the known ones.
func Libraries() []Library { return slices.Clone(libraries) }

// Names lists the libraries' names.
func Names() []string {
	names := make([]string, len(libraries))
	for i, l := range libraries {
		names[i] = l.Name
	}
	return names
}

// covered are the collectives with known decisions.
var covered = []tasks.Collective{
	tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.Gather, tasks.Scatter, tasks.ReduceScatter, tasks.Alltoall,
}

// Covered lists the collectives with known decisions.
func Covered() []tasks.Collective { return slices.Clone(covered) }

// Decide returns the library's decision for a request on a topology. Other collectives than
// the covered ones are an error. So are blocks of different sizes, and operations that don't
// commute: libraries decide otherwise for them.
func (l Library) Decide(r tasks.Request, t *levels.Topology) (Decision, error) {
	switch {
	case !slices.Contains(covered, r.Coll):
		return Decision{}, fmt.Errorf("%s: no decision is written down for %v; there are those for %s", l.Name, r.Coll, strings.Trim(strings.ReplaceAll(fmt.Sprint(covered), " ", ", "), "[]"))
	case r.Differ():
		return Decision{}, fmt.Errorf("%s: no decision is written down for blocks that differ", l.Name)
	case r.Reduces() && !r.Op.Commutative():
		return Decision{}, fmt.Errorf("%s: no decision is written down for %v, which does not commute", l.Name, r.Op)
	}
	if err := r.Validate(t.Size()); err != nil {
		return Decision{}, fmt.Errorf("%s: %v: %w", l.Name, r, err)
	}
	return l.decide(newQuestion(r, t)), nil
}

// question is a request with the facts of the topology by which libraries decide.
type question struct {
	request tasks.Request
	ranks   int
	nodes   int
	most    int      // ranks of the fullest node
	even    bool     // nodes have equally many ranks
	top     string   // symbol of the outermost level
	between []string // symbols of the levels between nodes
	inside  []string // of the others
	bytes   int64    // of a rank's buffer, or of a block
}

func newQuestion(r tasks.Request, t *levels.Topology) *question {
	q := &question{request: r, ranks: t.Size(), nodes: t.Nodes(), bytes: r.Bytes(), top: string(t.Level(t.Depth() - 1).Symbol)}
	for k := range t.Depth() {
		symbol := string(t.Level(k).Symbol)
		if t.Domains(k) < q.nodes {
			q.between = append(q.between, symbol)
		} else {
			q.inside = append(q.inside, symbol)
		}
	}
	at := make([]int, q.nodes)
	for rank := range levels.Rank(q.ranks) {
		at[t.Node(rank)]++
	}
	q.most, q.even = slices.Max(at), slices.Max(at) == slices.Min(at)
	return q
}

// plan returns a plan of a shape with an uncut message.
func (q *question) plan(shape tasks.Shape) tasks.Plan {
	return tasks.Plan{Shape: shape, Segment: tasks.Whole, Window: window}
}

// window of all plans, in segments: no schedule here has more on its way.
const window = 4

// on chooses for an operation on some levels.
func on(p tasks.Plan, symbols []string, op tasks.Collective, c tasks.Choice) tasks.Plan {
	for _, s := range symbols {
		p = p.Set(tasks.Kind{Symbol: s[0], Op: op}.String(), c)
	}
	return p
}

// isPower reports whether n is a power of two.
func isPower(n int) bool { return n&(n-1) == 0 }

// powerBelow returns the largest power of two up to n.
func powerBelow(n int) int64 { return int64(1) << (bits.Len(uint(n)) - 1) }

func nbc(algorithm string) tasks.Choice {
	return tasks.Choice{Submodule: submodules.NBC, Algorithm: algorithm}
}
