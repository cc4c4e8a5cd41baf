//go:build linux

package launch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

func init() { rankPrograms["chaos"] = chaos }

// What a rank says of itself, as the only word of a line or the first one.
const (
	sayHere  = "chaos-here"  // before that a SIGTERM would have ended it
	sayWell  = "chaos-well"  // all its results were right
	sayWrong = "chaos-wrong" // and what was
	sayBlame = "chaos-blame" // and the round, the ranks that its error names, and the error
	sayOther = "chaos-other" // and an error that names none
	sayStop  = "chaos-stop"  // and its process id: somebody has to continue it, or end it
	sayDeath = "chaos-death" // its last word
)

// errWrong is a result that isn't what it must be.
var errWrong = errors.New("wrong result")

// chaosRank is one rank of a chaosCase.
type chaosRank struct {
	chaosCase
	rank int
	fate *fate // nil for most
	met  chan struct{}
	own  *rand.Rand // what differs between ranks
}

// chaos plays a rank of the case with seed args[0].
func chaos(args []string) {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	check(err)
	c := &chaosRank{chaosCase: drawCase(seed, os.Getenv(chaosVariable) != ""), rank: rank(), met: make(chan struct{})}
	c.fate = c.fateOf(c.rank)
	c.own = rand.New(rand.NewPCG(seed, uint64(1+c.rank)))
	if c.patient {
		signal.Ignore(syscall.SIGTERM)
	}
	fmt.Println(sayHere)
	for round := range c.rounds {
		if err := c.round(round); err != nil {
			c.lastWord(round, err)
			os.Exit(1)
		}
	}
	if c.fate != nil && c.fate.phase != atStart {
		<-c.met
	}
	fmt.Println(sayWell)
}

// lastWord prints what an error says.
func (c *chaosRank) lastWord(round int, err error) {
	switch guilty, known := culprits(err); {
	case errors.Is(err, errWrong):
		fmt.Println(sayWrong, err)
	case known:
		fmt.Println(sayBlame, round, guilty, err)
	default:
		fmt.Println(sayOther, err)
	}
}

// culprits are the ranks that an error names. With a join more than one can be missing.
func culprits(err error) ([]levels.Rank, bool) {
	if e, ok := errors.AsType[*planner.PeerError](err); ok {
		return []levels.Rank{e.Rank}, true
	}
	if e, ok := errors.AsType[*join.PeerError](err); ok {
		return []levels.Rank{e.Rank}, true
	}
	if e, ok := errors.AsType[*join.JoinError](err); ok {
		return e.Ranks, len(e.Ranks) > 0
	}
	return nil, false
}

// meet begins a phase: the rank's fate comes true in it, now or soon.
func (c *chaosRank) meet(phase string, round, call int) {
	f := c.fate
	if f == nil || f.phase != phase || f.round != round {
		return
	}
	if (phase == inRun || phase == betweenIt) && f.call != call {
		return
	}
	happen := func() {
		defer close(c.met)
		if f.stop > 0 {
			goesOn := make(chan os.Signal, 1)
			signal.Notify(goesOn, syscall.SIGCONT)
			fmt.Println(sayStop, os.Getpid())
			check(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
			<-goesOn // it may come to another thread
		} else {
			fmt.Println(sayDeath)
			check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
	}
	if phase == betweenIt {
		pause(f.within)
		happen()
		return
	}
	time.AfterFunc(f.within, happen)
}

// round joins, calls and closes.
func (c *chaosRank) round(round int) error {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if c.deadly() {
		// Long enough for all who live; short, because ranks wait as long for one who died before it came.
		ctx, cancel = context.WithTimeout(ctx, 20*time.Second)
	}
	defer cancel()
	c.meet(inJoin, round, 0)
	o := &planner.Options{Plan: c.plans[round]}
	raw.SeamsOf(o).NoPeerReads = c.seed%4 == 0
	comm, err := planner.Join(ctx, o)
	if err != nil {
		return fmt.Errorf("join %d: %w", round, err)
	}
	if err := c.callAll(comm, round); err != nil {
		return c.leave(comm, fmt.Errorf("round %d: %w", round, err))
	}
	c.meet(inClose, round, 0)
	if err := comm.Close(); err != nil {
		return fmt.Errorf("close %d: %w", round, err)
	}
	return nil
}

// leave does one of the things that programs do after an error.
func (c *chaosRank) leave(comm *planner.Comm, err error) error {
	if errors.Is(err, errWrong) {
		return err
	}
	switch c.own.IntN(3) {
	case 0:
	case 1:
		pause(time.Duration(c.own.IntN(200)) * time.Millisecond)
	case 2:
		if again := planner.Barrier(context.Background(), comm); !errors.Is(again, planner.ErrBroken) {
			return fmt.Errorf("the call after %w is no better than: %w", err, again)
		}
		if close := comm.Close(); close != nil {
			if _, known := culprits(close); !known {
				return fmt.Errorf("close: %w", close)
			}
		}
	}
	return err
}

// callAll does the round's calls; all ranks draw the same ones.
func (c *chaosRank) callAll(comm *planner.Comm, round int) error {
	draw := rand.New(rand.NewPCG(c.seed, uint64(1000+round)))
	ctx := context.Background()
	comms := []*planner.Comm{comm}
	if draw.IntN(3) == 0 {
		dup, err := comm.Dup(ctx)
		if err != nil {
			return err
		}
		comms = append(comms, dup)
	}
	for n := range c.calls {
		c.meet(betweenIt, round, n)
		c.meet(inRun, round, n)
		if err := oneCall(ctx, comms, draw, n); err != nil && !errors.Is(err, submodules.ErrUnsupported) && !errors.Is(err, tasks.ErrPlan) { // which all ranks find alike
			return fmt.Errorf("call %d: %w", n, err)
		}
	}
	return nil
}

// oneCall draws a request and how to make it.
func oneCall(ctx context.Context, comms []*planner.Comm, draw *rand.Rand, n int) error {
	size := comms[0].Size()
	r := tasks.Request{Coll: tasks.Requestable()[draw.IntN(len(tasks.Requestable()))]}
	if r.Coll == tasks.Barrier {
		return planner.Barrier(ctx, comms[draw.IntN(len(comms))])
	}
	r.Count = int64(draw.IntN([]int{4, 300, 20_000, 120_000}[draw.IntN(4)]))
	if r.Rooted() {
		r.Root = levels.Rank(draw.IntN(size))
	}
	if r.Blocks() {
		r.Count /= int64(size)
	}
	if (r.Coll == tasks.Allgather || r.Coll == tasks.ReduceScatter) && draw.IntN(2) == 0 {
		r = differing(r, size)
	}
	if r.Coll == tasks.Alltoall && draw.IntN(2) == 0 {
		r = differing(r, size)
	}
	r.InPlace = r.Coll != tasks.Bcast && draw.IntN(2) == 0
	if r.Reduces() {
		r.Op = []tasks.Op{tasks.Sum, tasks.Max, tasks.Min}[draw.IntN(3)]
	}
	way := draw.IntN(4)
	switch draw.IntN(3) {
	case 0:
		r.Type = tasks.Uint8
		return callOf[uint8](ctx, comms, r, n, way)
	case 1:
		r.Type = tasks.Float64
		return callOf[float64](ctx, comms, r, n, way)
	}
	r.Type = tasks.Int32
	return callOf[int32](ctx, comms, r, n, way)
}

type chaosElement interface{ uint8 | int32 | float64 }

// call is one collective with its buffers.
type call[T chaosElement] struct {
	comm              *planner.Comm
	r                 tasks.Request
	send, recv, input []T // input is one of the others
	col               *planner.Collective
}

// callOf makes a request once, several times, or on all communicators at once.
func callOf[T chaosElement](ctx context.Context, comms []*planner.Comm, r tasks.Request, n, way int) error {
	one := newCall[T](comms[n%len(comms)], r)
	switch way {
	case 0:
		one.fill(n)
		if err := one.now(ctx); err != nil {
			return err
		}
		return one.check(n)
	case 1:
		if err := one.prepare(ctx); err != nil {
			return err
		}
		for range 3 {
			n++
			one.fill(n)
			if err := one.col.Run(ctx); err != nil {
				return err
			}
			if err := one.check(n); err != nil {
				return err
			}
		}
		return nil
	}
	var pending []*planner.Pending
	var calls []*call[T]
	for _, comm := range comms {
		k := newCall[T](comm, r)
		if err := k.prepare(ctx); err != nil {
			return err
		}
		k.fill(n)
		p, err := k.col.Start(ctx)
		if err != nil {
			return err
		}
		pending, calls = append(pending, p), append(calls, k)
	}
	if way == 3 {
		slices.Reverse(pending)
		slices.Reverse(calls)
	}
	for i, p := range pending {
		if err := p.Wait(ctx); err != nil {
			return err
		}
		if err := calls[i].check(n); err != nil {
			return err
		}
	}
	return nil
}

// newCall makes a rank's buffers; in place, one is part of the other.
func newCall[T chaosElement](comm *planner.Comm, r tasks.Request) *call[T] {
	rank, size := levels.Rank(comm.Rank()), int64(r.Type.Size())
	in, out := r.Buffers(rank, comm.Size())
	c := &call[T]{comm: comm, r: r, send: make([]T, in/size), recv: make([]T, out/size)}
	off, n := r.Block(rank)
	off, n = off/size, n/size
	switch {
	case r.Coll == tasks.Scatter && !r.Receives(rank):
		c.input, c.recv = c.send, c.send[off:][:n]
	case r.Input(rank) == tasks.Send:
		c.input = c.send
	case r.Exchanges():
		c.input, c.send = c.recv, c.recv
	case r.GivesBlocks():
		c.input, c.send = c.recv, c.recv[off:][:n]
	case r.TakesBlocks():
		c.input, c.send, c.recv = c.recv, c.recv, c.recv[:n]
	default:
		c.input, c.send = c.recv, c.recv
	}
	return c
}

// chaosValue is element i of a rank's input for a call.
func chaosValue[T chaosElement](rank, i, n int) T { return T((i*7 + rank*13 + n*5) % 11) }

// fill writes the input, and elsewhere what no result is.
func (c *call[T]) fill(n int) {
	for i := range c.recv {
		c.recv[i] = 99
	}
	rank := levels.Rank(c.comm.Rank())
	for _, p := range c.r.Given(rank, c.comm.Size()) {
		dst, off := c.piece(c.input, p)
		for i := range dst {
			dst[i] = chaosValue[T](int(rank), off+i, n)
		}
	}
}

// piece is one of a buffer, and where its source's input has it.
func (c *call[T]) piece(buf []T, p tasks.Piece) (elements []T, off int) {
	size := int64(c.r.Type.Size())
	return buf[p.At/size:][:p.Len/size], int(p.Off / size)
}

// counts is nil for blocks that are equal.
func (c *call[T]) counts() (counts []int) {
	for i := range c.r.Counts.Len() {
		counts = append(counts, int(c.r.Counts.At(i)))
	}
	return counts
}

func (c *call[T]) prepare(ctx context.Context) (err error) {
	root, counts := int(c.r.Root), c.counts()
	switch {
	case c.r.Coll == tasks.Bcast:
		c.col, err = planner.PrepareBcast(ctx, c.comm, c.recv, root)
	case c.r.Coll == tasks.Reduce:
		c.col, err = planner.PrepareReduce(ctx, c.comm, c.send, c.recv, c.r.Op, root)
	case c.r.Coll == tasks.Allreduce:
		c.col, err = planner.PrepareAllreduce(ctx, c.comm, c.send, c.recv, c.r.Op)
	case !c.r.Matrix.IsZero():
		c.col, err = planner.PrepareAlltoallMatrix(ctx, c.comm, c.send, c.recv, c.r.Matrix)
	case c.r.Coll == tasks.Alltoall:
		c.col, err = planner.PrepareAlltoall(ctx, c.comm, c.send, c.recv)
	case c.r.Coll == tasks.Scan:
		c.col, err = planner.PrepareScan(ctx, c.comm, c.send, c.recv, c.r.Op)
	case c.r.Coll == tasks.Exscan:
		c.col, err = planner.PrepareExscan(ctx, c.comm, c.send, c.recv, c.r.Op)
	case c.r.Coll == tasks.Allgather && counts != nil:
		c.col, err = planner.PrepareAllgatherv(ctx, c.comm, c.send, c.recv, counts)
	case c.r.Coll == tasks.Allgather:
		c.col, err = planner.PrepareAllgather(ctx, c.comm, c.send, c.recv)
	case c.r.Coll == tasks.Gather && counts != nil:
		c.col, err = planner.PrepareGatherv(ctx, c.comm, c.send, c.recv, counts, root)
	case c.r.Coll == tasks.Gather:
		c.col, err = planner.PrepareGather(ctx, c.comm, c.send, c.recv, root)
	case c.r.Coll == tasks.Scatter && counts != nil:
		c.col, err = planner.PrepareScatterv(ctx, c.comm, c.send, c.recv, counts, root)
	case c.r.Coll == tasks.Scatter:
		c.col, err = planner.PrepareScatter(ctx, c.comm, c.send, c.recv, root)
	case counts != nil:
		c.col, err = planner.PrepareReduceScatterv(ctx, c.comm, c.send, c.recv, counts, c.r.Op)
	default:
		c.col, err = planner.PrepareReduceScatter(ctx, c.comm, c.send, c.recv, c.r.Op)
	}
	return err
}

func (c *call[T]) now(ctx context.Context) error {
	root, counts := int(c.r.Root), c.counts()
	switch {
	case c.r.Coll == tasks.Bcast:
		return planner.Bcast(ctx, c.comm, c.recv, root)
	case c.r.Coll == tasks.Reduce:
		return planner.Reduce(ctx, c.comm, c.send, c.recv, c.r.Op, root)
	case c.r.Coll == tasks.Allreduce:
		return planner.Allreduce(ctx, c.comm, c.send, c.recv, c.r.Op)
	case !c.r.Matrix.IsZero():
		gives, gets := make([]int, c.comm.Size()), make([]int, c.comm.Size())
		for other := range gives {
			gives[other], gets[other] = int(c.r.Matrix.At(c.comm.Rank(), other)), int(c.r.Matrix.At(other, c.comm.Rank()))
		}
		return planner.Alltoallv(ctx, c.comm, c.send, gives, c.recv, gets)
	case c.r.Coll == tasks.Alltoall:
		return planner.Alltoall(ctx, c.comm, c.send, c.recv)
	case c.r.Coll == tasks.Scan:
		return planner.Scan(ctx, c.comm, c.send, c.recv, c.r.Op)
	case c.r.Coll == tasks.Exscan:
		return planner.Exscan(ctx, c.comm, c.send, c.recv, c.r.Op)
	case c.r.Coll == tasks.Allgather && counts != nil:
		return planner.Allgatherv(ctx, c.comm, c.send, c.recv, counts)
	case c.r.Coll == tasks.Allgather:
		return planner.Allgather(ctx, c.comm, c.send, c.recv)
	case c.r.Coll == tasks.Gather && counts != nil:
		return planner.Gatherv(ctx, c.comm, c.send, c.recv, counts, root)
	case c.r.Coll == tasks.Gather:
		return planner.Gather(ctx, c.comm, c.send, c.recv, root)
	case c.r.Coll == tasks.Scatter && counts != nil:
		return planner.Scatterv(ctx, c.comm, c.send, c.recv, counts, root)
	case c.r.Coll == tasks.Scatter:
		return planner.Scatter(ctx, c.comm, c.send, c.recv, root)
	case counts != nil:
		return planner.ReduceScatterv(ctx, c.comm, c.send, c.recv, counts, c.r.Op)
	}
	return planner.ReduceScatter(ctx, c.comm, c.send, c.recv, c.r.Op)
}

// check compares every element with what it must be.
func (c *call[T]) check(n int) error {
	for _, p := range c.r.Promised(levels.Rank(c.comm.Rank()), c.comm.Size()) {
		got, off := c.piece(c.recv, p)
		for i, v := range got {
			if want := c.want(p, off+i, n); v != want {
				return fmt.Errorf("%w: %v (in place: %v): element %d is %v, want %v", errWrong, c.r, c.r.InPlace, off+i, v, want)
			}
		}
	}
	return nil
}

func (c *call[T]) want(p tasks.Piece, i, n int) T {
	last := c.comm.Size() - 1
	if p.From != tasks.Everyone {
		last = int(p.From + p.More)
	}
	first := max(0, int(p.From))
	all := chaosValue[T](first, i, n)
	for rank := first + 1; rank <= last; rank++ {
		switch v := chaosValue[T](rank, i, n); c.r.Op.ID() {
		case tasks.OpMax:
			all = max(all, v)
		case tasks.OpMin:
			all = min(all, v)
		default:
			all += v
		}
	}
	return all
}
