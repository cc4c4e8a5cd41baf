package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/payload"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

const (
	// sampleTime is the least length of a sample. An operation of less than 200 µs is called over
	// 100 times: clock and barrier then don't count.
	sampleTime = 20 * time.Millisecond
	maxCalls   = 10_000
	minSamples = 5
	maxSamples = 10_000
	// maxSingles bounds the samples of single calls: a 99th percentile needs no more.
	maxSingles = 1000
	// maxRoots bounds the programs of a rotating root.
	maxRoots = 16
)

// effort is how long to measure.
type effort struct {
	samples int           // 0: as many as fit into time
	Time    time.Duration // of one size and plan
	single  bool          // one call a sample, as in a program computing between calls
	skew    time.Duration // so long does the last rank compute before its single call
	keep    bool          // the samples one by one
}

// subject is one rank's part in a measurement: of an operation under one plan, or of a plain
// stream.
type subject struct {
	comm    *planner.Comm // of the operation
	own     *planner.Comm // of barriers and sums, among the same ranks
	request tasks.Request // from the first root
	rotate  bool          // the root
	single  bool          // a sample is one call
	skew    time.Duration // lateness of the last rank in a single call
	wire    *wire         // measured in place of the operation, if there is one
	send    []byte        // nil if the operation has one buffer
	recv    []byte
	calls   []*planner.Collective // the same operation, of one root after the other
	turn    int                   // index into calls of the next one
	results [][][]byte            // by call: one period of each block of recv, as it must be
	perCall int                   // calls in a sample
	times   []float64             // µs per call, of all samples, the shortest first
	raw     []float64             // the same in the order of their measurement; nil: not kept
	wrong   []int64               // one number: elements, in all results so far
}

// newSubject prepares the operation on new buffers, made by t.
func newSubject(ctx context.Context, c, own *planner.Comm, r tasks.Request, rotate bool, t payload.Take) (*subject, error) {
	s := &subject{comm: c, own: own, request: r, rotate: rotate, perCall: 1, wrong: make([]int64, 1)}
	var err error
	if s.send, s.recv, err = payload.Buffers(r, c.Rank(), c.Size(), t); err != nil {
		return nil, err
	}
	return s, s.addCall(ctx, r.Root)
}

// withRoot returns the same operation from another root, on the same buffers.
func (s *subject) withRoot(ctx context.Context, root levels.Rank) (*subject, error) {
	other := &subject{comm: s.comm, own: s.own, request: s.request, perCall: 1, wrong: make([]int64, 1), send: s.send, recv: s.recv}
	other.request.Root = root
	return other, other.addCall(ctx, root)
}

// addCall prepares the operation from a root, as the next one of the rotation.
func (s *subject) addCall(ctx context.Context, root levels.Rank) error {
	r := s.request
	r.Root = root
	call, err := payload.Prepare(ctx, s.comm, r, s.send, s.recv)
	if err != nil {
		return err
	}
	var result [][]byte
	if r.Coll != tasks.Barrier {
		if result, err = payload.Outputs(r, s.comm.Rank(), s.comm.Size()); err != nil {
			return err
		}
	}
	s.calls, s.results = append(s.calls, call), append(s.results, result)
	return nil
}

// warmUp estimates the time of a call on the slowest rank, and chooses how many calls
// make a sample. Both are the same on all ranks.
func (s *subject) warmUp(ctx context.Context) (estimate time.Duration, err error) {
	best := []float64{math.Inf(1)}
	for range 3 {
		d, err := s.takeSample(ctx)
		if err != nil {
			return 0, err
		}
		best[0] = min(best[0], d.Seconds())
	}
	if err := combine(ctx, s.own, best, tasks.Max); err != nil {
		return 0, err
	}
	estimate = max(time.Duration(best[0]*1e9), 1)
	if !s.single {
		s.perCall = int(min((sampleTime+estimate-1)/estimate, maxCalls))
	}
	return estimate, s.addRoots(ctx)
}

// addRoots lets the root rotate in samples of several calls. Else the root of a bcast, or the
// leaves of a reduce, would be calls ahead of the others, and calls would overlap. Each new call
// runs once for a check of its result.
func (s *subject) addRoots(ctx context.Context) error {
	if !s.rotate || s.perCall == 1 {
		return nil
	}
	calls := s.perCall
	s.perCall = 1
	defer func() { s.perCall = calls }()
	for _, root := range s.comm.Topology().Dealt(maxRoots)[1:] {
		if err := s.addCall(ctx, root); err != nil {
			return err
		}
		s.turn = len(s.calls) - 1
		if _, err := s.takeSample(ctx); err != nil {
			return err
		}
	}
	return nil
}

// takeSample runs the operation perCall times and returns this rank's time. All ranks
// begin together. The result of the last call is checked.
func (s *subject) takeSample(ctx context.Context) (time.Duration, error) {
	if s.wire != nil {
		return s.takeWireSample(ctx)
	}
	me, bcast := levels.Rank(s.comm.Rank()), s.request.Coll == tasks.Bcast
	want := s.results[s.turn] // of a bcast the first root's, passed on by the others
	if bcast && s.calls[s.turn].Request().Root == me {
		payload.Tile(s.recv, want[0])
	} else {
		payload.Tile(s.recv, payload.Poison)
	}
	if err := s.assemble(ctx); err != nil {
		return 0, err
	}
	received := false
	begin := time.Now()
	if s.skew > 0 && int(me) == s.comm.Size()-1 {
		for time.Since(begin) < s.skew {
		}
	}
	for range s.perCall {
		if s.calls[s.turn].Request().Receives(me) {
			received = true
			if !bcast {
				want = s.results[s.turn]
			}
		}
		if err := s.calls[s.turn].Run(ctx); err != nil {
			return 0, err
		}
		s.turn = (s.turn + 1) % len(s.calls)
	}
	took := time.Since(begin)
	// Checking must not take time from ranks still measured.
	if err := planner.Barrier(ctx, s.own); err != nil {
		return 0, err
	}
	if s.request.Coll != tasks.Barrier && received {
		s.wrong[0] += payload.WrongBlocks(s.request, s.comm.Rank(), s.recv, want)
	}
	return took, nil
}

// assemble returns when all ranks may begin. Before a single call each rank has written its send
// buffer, like a program computing between calls. The second barrier then takes little: ranks
// leave it nearly together.
func (s *subject) assemble(ctx context.Context) error {
	if s.single {
		payload.Rewrite(s.send)
		if err := planner.Barrier(ctx, s.own); err != nil {
			return err
		}
	}
	return planner.Barrier(ctx, s.own)
}

// measure takes samples of all subjects in turn: a disturbance of the machine disturbs all of
// them.
func measure(ctx context.Context, subjects []*subject, e effort) error {
	var round time.Duration
	for _, s := range subjects {
		s.single, s.skew = e.single, e.skew
		estimate, err := s.warmUp(ctx)
		if err != nil {
			return err
		}
		round += estimate * time.Duration(s.perCall)
	}
	n := e.samples
	if n == 0 {
		most := time.Duration(maxSamples)
		if e.single {
			most = maxSingles
		}
		n = int(min(max(e.Time*time.Duration(len(subjects))/round, minSamples), most))
	}
	for range n {
		for _, s := range subjects {
			d, err := s.takeSample(ctx)
			if err != nil {
				return err
			}
			s.times = append(s.times, float64(d.Nanoseconds())/1e3/float64(s.perCall))
		}
	}
	for _, s := range subjects {
		if err := s.combineResults(ctx); err != nil {
			return err
		}
		if e.keep {
			s.raw = slices.Clone(s.times)
			for i, v := range s.raw {
				s.raw[i] = kit.Round(v, 1e3)
			}
		}
		slices.Sort(s.times)
	}
	return nil
}

// combineResults makes times those of the slowest rank, and wrong the sum over all
// ranks.
func (s *subject) combineResults(ctx context.Context) error {
	if err := combine(ctx, s.own, s.times, tasks.Max); err != nil {
		return fmt.Errorf("collect times: %w", err)
	}
	return combine(ctx, s.own, s.wrong, tasks.Sum)
}

// combine combines numbers of all ranks in place.
func combine[T any](ctx context.Context, c *planner.Comm, numbers []T, op tasks.Op) error {
	return planner.Allreduce(ctx, c, numbers, numbers, op)
}
