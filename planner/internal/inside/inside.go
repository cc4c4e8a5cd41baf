// Package inside hands what package planner keeps to itself to the packages beside it: raw for libraries of other languages,
// elastic, feedback, metrics. planner gives its functions when it is initialized, and these take them; so nothing of it is in
// planner's API.
package inside

import (
	"context"
	"errors"
	"log/slog"
	"time"
	"unsafe"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Calls are functions of package planner. C is its Comm, Col its Collective, O its Options: this package can't import it.
// Package raw says what most of them do.
type Calls[C, Col, O any] struct {
	JoinAs  func(ctx context.Context, cfg join.Config, o *O) (*C, error)
	Inspect func(r tasks.Request, t *levels.Topology, o *O) (*Decision, error)
	Usages  func() []Usage
	Seams   func(o *O) *Seams

	Canonical    func(c *C, r tasks.Request) (tasks.Request, error)
	Prepare      func(c *C, ctx context.Context, r tasks.Request, send, recv []byte) (*Col, error)
	PrepareNamed func(c *C, name string, r tasks.Request, send, recv []byte, like *Col) (*Col, error)
	Ready        func(c *C, ctx context.Context, r tasks.Request) error
	Run          func(c *C, ctx context.Context, r tasks.Request, send, recv []byte) error
	Rebind       func(col *Col, send, recv []byte) error
	Explain      func(c *C, r tasks.Request) (string, error)

	Exchange      func(c *C, ctx context.Context, coll tasks.Collective, root int, give, get [][]byte) error
	StartExchange func(c *C, ctx context.Context, coll tasks.Collective, root int, give, get [][]byte) (Pending, error)

	DrawID func(c *C) (uint64, error)
	Sub    func(c *C, id uint64, ranks []int) (*C, error)

	Under     func(c *C) (*executor.Comm, submodules.Registry, error)
	Counters  func(c *C) executor.Counters
	TableFile func(c *C) string
	KeepTable func(c *C, t *table.Table) error

	// For package feedback: a collective of its own, described by why; and candidates to try.
	Internal func(c *C, r tasks.Request, why string, buf []byte) (*executor.Run, error)
	Variants func(c *C, value string, numbers []int64, plans []string, of []*Col) (v Variants, names []string, holds int, err error)

	// For package elastic.
	TakesIn     func(c *C) bool                                             // whether the job takes processes in
	MayLeaveOut func(c *C, ranks []int) error                               // an error unless the others may go on without them
	Unheard     func(c *C, ctx context.Context, ranks []int) ([]int, error) // breaks c; those of them that don't notice it soon
	CallTimeout func(c *C) time.Duration                                    // the limit of c's calls; 0: none
	Logger      func(o *O) *slog.Logger                                     // for warnings that must not get lost
}

var given any

// Give sets the functions. planner calls it once.
func Give[C, Col, O any](c *Calls[C, Col, O]) { given = c }

// Take returns them.
func Take[C, Col, O any]() *Calls[C, Col, O] { return given.(*Calls[C, Col, O]) }

// Errors of calls with a missing argument.
var (
	ErrNoContext  = errors.New("the context is nil; allowed is any other, context.Background() for one")
	ErrNoFunction = errors.New("the function is nil; it is what each rank runs")
)

// CheckFunction returns an error if there is no context to call a function with, or no function.
func CheckFunction(ctx context.Context, without bool) (err error) {
	if ctx == nil {
		err = ErrNoContext
	}
	if without {
		err = errors.Join(err, ErrNoFunction)
	}
	return err
}

// Bytes is the memory of a slice. Its elements have no pointers.
func Bytes[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// Pending is what was started, and has to be waited for.
type Pending interface {
	Done() bool
	Wait(ctx context.Context) error
}

// Variants are candidates by which a communicator decides and compiles in turns. One is in use at a time.
type Variants interface {
	Prepare(i, old int) error   // makes i ready, while old is in use
	Enter(from, to int)         // goes from one to another
	Drop(i int)                 // forgets what was decided by one that is not in use
	Explain(line func() string) // adds a line to the text of collectives
}

// Seams are options for libraries of other languages and for tests.
type Seams struct {
	// NoPeerReads keeps processes of a node from copying straight from each other's
	// memory, as if the kernel forbade it; shared memory serves instead.
	NoPeerReads bool
	// Progress, if not nil, is called again and again by a goroutine waiting for a
	// collective, see executor.Config.
	Progress func()
	// Elsewhere, if not nil, tells of the calls of another library, such as MPI, that the program is in: they count as
	// waits in [Usage], and tierflow ps shows them.
	Elsewhere func() executor.Elsewhere
}

// Decision is a chosen plan with all the reasons for it.
type Decision struct {
	Plan     tasks.Plan
	Forced   tasks.Plan          // the forced part of Plan
	Registry submodules.Registry // the submodules to choose from
	Text     string              // as planner.Explain returns it
	Table    *table.Table        // the one consulted; nil: there is none
	Origin   string              // of Table, such as its file; empty without one
	Links    string              // between nodes, see planner.Options; empty: unknown
	Answer   table.Answer        // of Table; without one it has no estimates
	Fallback string              // why Table did not decide; empty: it did, or there is none
}

// Usage is the work of one rank of this process since it entered its job, and its
// present state. It counts all communicators of the rank together.
type Usage struct {
	World  int            // the number of the job in this process, from 0: some processes enter several
	Rank   int            // of the communicator of all ranks
	Levels []string       // names, from the inside out: node, network; Sent and Read have an item for each
	TLS    *join.TLSState `json:",omitempty"` // of connections between nodes; nil: they are plain
	executor.Activity
}
