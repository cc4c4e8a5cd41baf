package executor_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

func TestMain(m *testing.M) {
	// A failing random case is printed with its seed; files of them are in the way.
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	if err := flag.Set("test.parallel", "4"); err != nil { // parallel tests mostly wait
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience is after how long a test that waits is a test that hangs. On two processors that others
// keep busy, ranks of a test have taken ten times as long as alone.
const patience = 3 * time.Minute

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// job is a request and a plan on the ranks of a world.
type job struct {
	world    *executor.World
	topology *levels.Topology
	request  tasks.Request
	plan     tasks.Plan
}

// reverse makes communicator 1, whose ranks are numbered from the world's end.
func reverse(w *executor.World) {
	all := make([]levels.Rank, w.Size())
	for r := range all {
		all[r] = levels.Rank(w.Size() - 1 - r)
	}
	for _, r := range all {
		if _, err := w.Endpoint(r).Make(1, all); err != nil {
			panic(err)
		}
	}
}

// makeComm makes a rank's end of a communicator.
func makeComm(t failer, e *executor.Endpoint, id executor.CommID, ranks []levels.Rank) *executor.Comm {
	t.Helper()
	c, err := e.Make(id, ranks)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t failer, topo, plan string) (*levels.Topology, tasks.Plan) {
	t.Helper()
	return tasktest.Topology(t, topo), tasktest.Plan(t, plan)
}

// compile makes one rank's binding, without buffers.
func (j job) compile(rank levels.Rank) (executor.Binding, error) {
	compiled, err := submodules.CompileRequest(j.request, j.topology, j.plan, rank, all.Submodules())
	b := executor.Binding{Compiled: compiled, Request: j.request.String()}
	if err != nil {
		return b, err
	}
	if j.request.Reduces() {
		b.Kernel, err = kernel.For(j.request.Op, j.request.Type)
		b.User = j.request.Op.ID() == tasks.OpUser
	}
	return b, err
}

// bind compiles for all ranks and binds buffers by rank; send may be nil.
func (j job) bind(t failer, send, recv [][]byte) []*executor.Run {
	t.Helper()
	return j.bindOn(t, 0, send, recv)
}

// bindOn is bind on another communicator. Buffers are numbered by its ranks, the
// runs by those of the world.
func (j job) bindOn(t failer, comm executor.CommID, send, recv [][]byte) []*executor.Run {
	t.Helper()
	runs := make([]*executor.Run, j.topology.Size())
	for r := range runs {
		c := j.world.Endpoint(levels.Rank(r)).Comm(comm)
		var in []byte
		if send != nil {
			in = send[c.Rank()]
		}
		runs[r] = j.bindOne(t, c, in, recv[c.Rank()])
	}
	return runs
}

// bindOne compiles for a communicator's own rank and binds its buffers.
func (j job) bindOne(t failer, c *executor.Comm, send, recv []byte) *executor.Run {
	t.Helper()
	b, err := j.compile(c.Rank())
	if err != nil {
		t.Fatal(err)
	}
	b.Send, b.Recv = send, recv
	run, err := c.Bind(b)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// ranks calls f for each rank on a goroutine of its own and returns their errors.
// If they don't end, it says what they wait for.
func ranks(t failer, w *executor.World, f func(ctx context.Context, rank int) error) []error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var waiting []string
	timer := time.AfterFunc(patience, func() {
		for r := range w.Size() {
			waiting = append(waiting, w.Endpoint(levels.Rank(r)).Waiting()...)
		}
		cancel(fmt.Errorf("hangs: %s", strings.Join(waiting, "; ")))
	})
	defer timer.Stop()
	errs := make([]error, w.Size())
	var all sync.WaitGroup
	for r := range errs {
		all.Go(func() { errs[r] = f(ctx, r) })
	}
	all.Wait()
	if ctx.Err() != nil {
		t.Fatal(context.Cause(ctx))
	}
	return errs
}

// succeed is ranks, none of which may fail.
func succeed(t failer, w *executor.World, f func(ctx context.Context, rank int) error) {
	t.Helper()
	for r, err := range ranks(t, w, f) {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
}

// do runs bound runs once on all ranks.
func do(t failer, w *executor.World, runs []*executor.Run) {
	t.Helper()
	succeed(t, w, func(ctx context.Context, r int) error { return runs[r].Do(ctx) })
}

// names tells whether an error is a PeerError of one of some ranks.
func names(err error, some ...levels.Rank) bool {
	var peer *executor.PeerError
	return errors.As(err, &peer) && slices.Contains(some, peer.Rank)
}

// newWorld is closed at the end of the test.
func newWorld(t testing.TB, n int, c executor.Config) *executor.World {
	t.Helper()
	return newShaped(t, n, c, nil)
}

// inBubble calls f with a world in a bubble of its own: its clock is exact, and stands still while
// anybody computes.
func inBubble(t *testing.T, n int, c executor.Config, f func(t *testing.T, w *executor.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := local.New(n, c)
		defer w.Close()
		f(t, w)
	})
}

// newShaped is newWorld with messages that take their time.
func newShaped(t testing.TB, n int, c executor.Config, s local.Shaper) *executor.World {
	t.Helper()
	w := local.NewShaped(n, c, s)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// onProcessors makes a world of n ranks as on a machine with so many processors: that
// decides how they wait, and whether there are rings between them.
func onProcessors(processors, n int, c executor.Config) *executor.World {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	return local.New(n, c)
}

// raw is the bytes of a slice.
func raw[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// raws is raw for each rank.
func raws[T any](s [][]T) [][]byte {
	b := make([][]byte, len(s))
	for r := range s {
		b[r] = raw(s[r])
	}
	return b
}
