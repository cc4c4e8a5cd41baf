package planner_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
)

// Random programs: every kind of call, on communicators that are made, used and closed
// at the same time by goroutines of their own, on random layouts under random plans,
// with at most one fault per program. What calls return is compared with plain Go code
// over the input of all ranks; after a fault no call may hang, and none may give wrong
// data without an error.
//
// A sample runs with every go test. For hours of it:
//
//	go test ./planner -run '^TestRandomPrograms$' -timeout 0 -random.time=8h -random.ranks=processes
//
// with -race or -tags invariants if wanted; TIERFLOW_RANDOM_TIME=30m does the same.
// -random.ranks is goroutines, processes (which are goroutines over shared memory and
// TCP), system (real processes) or empty, for the first two by turns; -random.faults=none
// leaves the faults out, and the name of a kind of them all others. A failure prints its
// seed and the command that replays it:
//
//	go test ./planner -run '^TestRandomPrograms$' -random.ranks=processes -random.seed=17
//
// -random.repeat=100 does so until it fails; -random.without=3,8 leaves operations out,
// and -random.cut finds out which can be.

// Kinds of ranks.
const (
	randomLocal  = "goroutines"
	randomJoined = "processes"
	randomSystem = "system"
)

var (
	randomTime        time.Duration
	randomSeed        uint64
	randomRepeat      int
	randomRanks       string
	randomFaultWanted string
	randomWithout     string
	randomFailures    int
	randomCut         bool
	randomChild       bool
)

func init() {
	flag.DurationVar(&randomTime, "random.time", 0, "how long random programs run")
	flag.Uint64Var(&randomSeed, "random.seed", 0, "run the program of this seed only")
	flag.IntVar(&randomRepeat, "random.repeat", 1, "run it so many times")
	flag.StringVar(&randomRanks, "random.ranks", "", "kind of ranks: goroutines, processes, system")
	flag.StringVar(&randomFaultWanted, "random.faults", "", "none, or the only kind of fault: "+strings.Join(faultNames[1:], ", "))
	flag.StringVar(&randomWithout, "random.without", "", "numbers of operations to leave out")
	flag.IntVar(&randomFailures, "random.failures", 1, "stop after so many failures")
	flag.BoolVar(&randomChild, "random.child", false, "for the test's own use")
	flag.BoolVar(&randomCut, "random.cut", false, "cut the program of -random.seed down")
}

// randomPatience is how long a program may take: hundreds of times as long as most do.
// Those with segments of a byte have taken 8 s on a machine with ten times as many busy
// threads as processors.
const randomPatience = slowdown * 3 * time.Minute

// TestRandomPrograms runs them in a process of their own: what crashes or hangs must
// neither end nor disturb the tests, and its seed be known.
func TestRandomPrograms(t *testing.T) {
	t.Parallel() // what runs beside it mostly waits
	switch {
	case randomCut:
		cutDown(t)
		return
	case randomChild:
		playRandom(t)
		return
	}
	limit := sampleTime(t)
	until := time.Now().Add(limit)
	sum := randomSum{first: randomSeed}
	switch {
	case randomSeed != 0:
	case randomTime == 0 && os.Getenv("TIERFLOW_RANDOM_TIME") == "":
		sum.first = 1 // the sample is the same each time
	default:
		sum.first = rand.Uint64N(1 << 40)
	}
	sum.last = sum.first - 1
	for sum.failures < randomFailures {
		failure := sum.child(t, time.Until(until))
		if failure != "" {
			sum.failures++
			t.Errorf("seed %d: %s", sum.last, failure)
		}
		if randomSeed != 0 || time.Now().After(until) {
			break
		}
	}
	t.Log(sum)
}

// sampleTime is how long to go on.
func sampleTime(t *testing.T) time.Duration {
	switch text := os.Getenv("TIERFLOW_RANDOM_TIME"); {
	case randomTime > 0:
		return randomTime
	case text != "":
		limit, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal("TIERFLOW_RANDOM_TIME: ", err)
		}
		return limit
	case testing.Short():
		return 2 * time.Second
	}
	return 4 * time.Second
}

// randomSum is what many programs came to.
type randomSum struct {
	first, last        uint64
	programs, failures int
	calls              int64
}

func (s randomSum) String() string {
	return fmt.Sprintf("random: %d programs, %d calls, %d failures, seeds %d to %d", s.programs, s.calls, s.failures, s.first, s.last)
}

// Lines of a child: a program begins, and the calls that it has made.
const (
	childBegins = "random-begins "
	childEnds   = "random-ends "
)

// child runs programs in a further process until one fails or the time is over.
func (s *randomSum) child(t *testing.T, limit time.Duration) (failure string) {
	t.Helper()
	seed := s.last + 1
	args := append(passOn(), "-random.child", fmt.Sprint("-random.seed=", seed), fmt.Sprint("-random.time=", limit))
	if randomSeed != 0 {
		args = append(args, fmt.Sprint("-random.repeat=", randomRepeat))
	} else {
		args = append(args, "-random.repeat=0")
	}
	said, err := again(t, args...)
	var rest strings.Builder
	for line := range strings.Lines(said) {
		if _, text, ok := strings.Cut(line, childBegins); ok {
			fmt.Sscan(text, &s.last)
			s.programs++
		} else if _, text, ok := strings.Cut(line, childEnds); ok {
			var calls int64
			fmt.Sscan(text, &calls)
			s.calls += calls
		} else {
			rest.WriteString(line)
		}
	}
	if err == nil {
		return ""
	}
	p := drawProgram(s.last, s.kind(), randomFaultWanted != "none")
	p.without(numbers(t, randomWithout))
	return fmt.Sprintf("%v\nreplay: %s\n%v%s", err, p.replay(), p, &rest)
}

// kind is of which kind the ranks of the last program are.
func (s *randomSum) kind() string { return kindOfRanks(s.last) }

func kindOfRanks(seed uint64) string {
	if randomRanks != "" {
		return randomRanks
	}
	return []string{randomLocal, randomJoined}[seed%2]
}

// passOn are the flags that a further process gets too.
func passOn() []string {
	return []string{
		"-test.timeout=0", "-test.run=^TestRandomPrograms$", "-random.ranks=" + randomRanks,
		"-random.faults=" + randomFaultWanted, "-random.without=" + randomWithout,
	}
}

// again runs this test's binary once more.
func again(t *testing.T, args ...string) (said string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), self, args...).CombinedOutput()
	return string(out), err
}

// playRandom runs programs from a seed on, here.
func playRandom(t *testing.T) {
	s := &randomSession{t: t, until: time.Now().Add(randomTime)}
	closeAll(t, joinProcesses(t, 3, 2, nil)) // makes what is made once
	s.goroutines = goleak.IgnoreCurrent()
	s.before = leftovers(t)
	for n := 0; !t.Failed() && (randomRepeat == 0 && time.Now().Before(s.until) || n < max(1, randomRepeat)); n++ {
		seed := randomSeed
		if randomRepeat == 0 {
			seed += uint64(n)
		}
		p := drawProgram(seed, kindOfRanks(seed), randomFaultWanted != "none")
		p.without(numbers(t, randomWithout))
		fmt.Printf("\n%s%d\n", childBegins, seed)
		fmt.Printf("\n%s%d\n", childEnds, s.run(p, n%50 == 0))
	}
}

// randomSession is a run of many programs.
type randomSession struct {
	t          *testing.T
	until      time.Time
	goroutines goleak.Option
	before     [3]int
}

func numbers(t *testing.T, list string) (all []int) {
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal("-random.without: ", err)
		}
		all = append(all, n)
	}
	return all
}

// replay is the command that runs a program again.
func (p *randomProgram) replay() string {
	command := fmt.Sprintf("go test ./planner -run '^TestRandomPrograms$' -random.ranks=%s -random.seed=%d -random.repeat=100", p.ranks, p.seed)
	if randomFaultWanted != "" {
		command += " -random.faults=" + randomFaultWanted
	}
	if randomWithout != "" {
		command += " -random.without=" + randomWithout
	}
	return command
}

// run runs a program, sees that it leaves nothing, and returns how many calls it made.
func (s *randomSession) run(p *randomProgram, collect bool) (calls int64) {
	var log lockedBuffer
	reports, hangs := p.run(s.t, &log)
	wrong := p.judge(reports)
	for _, r := range reports {
		calls += r.Calls
	}
	if hangs == "" {
		wrong = append(wrong, s.leaks(collect)...)
	} else {
		wrong = append(wrong, "hangs: "+hangs)
	}
	if len(wrong) > 0 {
		s.t.Errorf("%s\n%s", strings.Join(wrong, "\n"), log.String())
	}
	return calls
}

// leaks looks for goroutines and descriptors after each program, and for memory, which
// the garbage collector gives back, after some.
func (s *randomSession) leaks(collect bool) (wrong []string) {
	if err := goleak.Find(s.goroutines); err != nil {
		wrong = append(wrong, err.Error())
	}
	var now [3]int
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if clocktest.Await(ctx, func() bool {
		if collect {
			runtime.GC()
		}
		now = leftovers(s.t)
		return now[1] <= s.before[1] && (!collect || now[2] <= s.before[2])
	}) == nil {
		return wrong
	}
	return append(wrong, fmt.Sprintf("goroutines, descriptors, mappings: %v before, %v after", s.before, now))
}

// options are those of a program's communicator.
func (p *randomProgram) options(log *lockedBuffer) *planner.Options {
	o := &planner.Options{
		Plan: p.plan, Deterministic: p.deterministic, StallAfter: 2 * time.Second,
		CloseTimeout: randomPatience / 2, Log: slog.New(slog.NewTextHandler(log, nil)),
	}
	raw.SeamsOf(o).NoPeerReads = p.noPeerReads
	if p.machine != nil {
		o.Machine, o.Files = "machine", inMemory("machine", p.machine)
	}
	if p.measured {
		o.Machine = planner.MachineMeasure
	}
	if p.slow && p.ranks == randomLocal {
		o.Link = slowLink{}
	}
	return o
}

type slowLink struct{}

var _ local.Shaper = slowLink{}

// Due is a fixed time later, by pair of ranks.
func (slowLink) Due(from, to levels.Rank, _ int64, now time.Time) time.Time {
	return now.Add(time.Duration(20+7*(from+2*to)) * time.Microsecond)
}

// at is where a rank is.
func (p *randomProgram) at(r int, cfg *join.Config) {
	path := p.paths[r]
	switch cfg.Node = path[len(path)-1]; len(path) {
	case 2:
		cfg.NUMA, cfg.Node = path[0], path[1]
	case 3:
		cfg.NUMA, cfg.Node, cfg.Site = path[0], path[1], path[2]
	}
}

// run runs a program; hangs says what did, with all that is known about it.
func (p *randomProgram) run(t *testing.T, log *lockedBuffer) (reports []randomReport, hangs string) {
	if p.ranks == randomSystem {
		return p.runSystem(t)
	}
	var comms []*planner.Comm
	if p.ranks == randomJoined {
		comms = joinPlaced(t, len(p.paths), p.options(log), p.at)
	} else {
		var err error
		if comms, err = planner.LocalOn(p.topology, p.options(log)); err != nil {
			t.Fatalf("%v\n%v", err, p)
		}
	}
	shared := &randomShared{entered: make([]atomic.Int32, p.ops)}
	reports = make([]randomReport, len(comms))
	ranks := make([]*randomRank, len(comms))
	var all sync.WaitGroup
	for i, c := range comms {
		ranks[i] = &randomRank{p: p, fault: p.fault, rank: i, world: c, shared: shared}
		all.Go(func() { reports[i] = ranks[i].live() })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }() // its only end is theirs
	select {
	case <-done:
		return reports, ""
	case <-time.After(randomPatience):
	}
	var b bytes.Buffer
	for _, r := range ranks {
		fmt.Fprint(&b, r.where())
	}
	if p.ranks == randomLocal {
		comms = comms[:1]
	}
	for _, c := range comms {
		c.Dump(&b)
	}
	stacks := make([]byte, 1<<20)
	fmt.Fprintf(&b, "%s\n", stacks[:runtime.Stack(stacks, true)])
	return nil, b.String()
}

// lockedBuffer is where ranks log.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
