package launch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

func init() { rankPrograms["faulty"] = faulty }

// fault is what goes wrong in a job, and what is to be found.
type fault struct {
	name    string
	want    verdict.Class // 0: nothing is wrong
	jobs    int           // that are played at a time
	cluster bool          // it happens to a node of an emulated cluster, and tests with few seeds leave it out
	asked   bool          // the job moves: it is asked from outside
}

// faults are what TestVerdicts injects.
var faults = []fault{
	{name: "killed", jobs: 4, want: verdict.Died},
	{name: "stopped", jobs: 4, want: verdict.Stopped},
	{name: "loops", jobs: 4, want: verdict.Late},
	{name: "loops in an operation", jobs: 4, want: verdict.Computing},
	{name: "differs", jobs: 4, want: verdict.Mismatch},
	{name: "skips", jobs: 4, want: verdict.Mismatch},
	{name: "circle", jobs: 4, want: verdict.Deadlock},
	{name: "slow node", jobs: 2, want: verdict.SlowLink, cluster: true, asked: true},
	{name: "cut off", jobs: 2, want: verdict.Unreachable, cluster: true},
	{name: "starved", jobs: 1, want: verdict.SlowRank, asked: true},
	{name: "healthy", jobs: 2, asked: true},
}

// faultCase is a job with a fault. It follows from its fault and seed alone.
type faultCase struct {
	fault
	seed   uint64
	opts   Options
	ranks  int
	calls  int
	at     int // the call
	victim int // a rank; of a cluster a node
	// bursts: calls on the cluster are of 64 KiB, and a rank sleeps before each, on any node.
	bursts  bool
	sleeper int
}

// clusterNodes and clusterRanks are the size of emulated clusters.
const (
	clusterNodes = 4
	clusterRanks = 2 // on each node
)

func drawFault(f fault, seed uint64) faultCase {
	draw := rand.New(rand.NewPCG(seed, 1))
	c := faultCase{fault: f, seed: seed, ranks: 4 + draw.IntN(5), calls: 30}
	nodes := 1 + draw.IntN(4)
	switch {
	case f.want == verdict.SlowRank:
		c.ranks, nodes = 4, 1 // the others share the other processor
	case f.cluster:
		c.ranks = clusterNodes * clusterRanks
	}
	c.at, c.victim = 5+draw.IntN(20), draw.IntN(c.ranks)
	c.bursts, c.sleeper = f.want == verdict.SlowLink && seed%4 >= 2, draw.IntN(c.ranks)
	if c.strikesLast() {
		c.at = c.calls
	}
	c.opts = Options{Ranks: c.ranks, Oversubscribe: true}
	if f.cluster {
		c.victim = 1 + draw.IntN(clusterNodes-1) // the launcher is on the first one
		c.opts.Ranks, c.opts.Dir = 0, "/"
		c.opts.Hosts = fmt.Sprintf("node0:%[1]d,node1:%[1]d,node2:%[1]d,node3:%[1]d", clusterRanks)
	} else if nodes > 1 {
		var hosts []string
		for n := range nodes {
			hosts = append(hosts, fmt.Sprintf("n%d:%d", n, (c.ranks+n)/nodes))
		}
		c.opts.Hosts, c.opts.Launcher = strings.Join(hosts, ","), launcherLocal
	}
	return c
}

// strikesLast reports whether a rank is stopped after its last call: only Close needs it.
func (c *faultCase) strikesLast() bool { return c.want == verdict.Stopped && c.seed%4 == 3 }

// isFull reports whether tests play whole tables.
func isFull() bool { return os.Getenv("TIERFLOW_TEST_SEEDS") != "" }

// stallAfter is Options.StallAfter of the ranks, as it comes.
const stallAfter = 10 * time.Second

// blamed are the ranks that are to be found.
func (c *faultCase) blamed() (all []int) {
	switch {
	case c.cluster:
		for r := range clusterRanks {
			all = append(all, c.victim*clusterRanks+r)
		}
		return all
	case c.name == "circle":
		other := (c.victim + 1) % c.ranks
		return []int{min(c.victim, other), max(c.victim, other)}
	}
	return []int{c.victim}
}

// isRight reports whether a finding has the class, and the rank, pair or node.
func (c *faultCase) isRight(f *verdict.Finding) bool {
	if f == nil || f.Class != c.want {
		return f == nil && c.want == 0
	}
	if c.cluster { // a pair that the node is part of, or some of its ranks
		node := fmt.Sprintf("node%d", c.victim)
		return slices.Contains(f.Nodes, node) || !slices.ContainsFunc(f.Ranks, func(r int) bool { return r/clusterRanks != c.victim })
	}
	return slices.Equal(f.Ranks, c.blamed())
}

// faulty plays a rank of the case with fault args[0] and seed args[1].
func faulty(args []string) {
	n, err := strconv.Atoi(args[0])
	check(err)
	seed, err := strconv.ParseUint(args[1], 10, 64)
	check(err)
	c := drawFault(faults[n], seed)
	if c.name == "starved" && len(args) == 2 {
		c.becomeBound(args)
	}
	ctx := context.Background()
	comm, err := planner.Join(ctx, nil)
	check(err)
	own := rand.New(rand.NewPCG(seed, uint64(2+comm.Rank())))
	if c.cluster || c.want == verdict.SlowRank {
		c.goOn(ctx, comm)
	}
	if c.want == 0 {
		c.calls = 200
	}
	for i := range c.calls {
		c.compute(own, comm.Rank(), i)
		if c.want > 0 && i == c.at && c.isStruck(comm.Rank()) && c.strike(ctx, comm) {
			continue
		}
		check(c.call(ctx, comm, i, 0))
	}
	if c.strikesLast() && c.isStruck(comm.Rank()) {
		c.strike(ctx, comm)
	}
	check(comm.Close())
}

// becomeBound gives the victim one processor, and the others another one.
func (c *faultCase) becomeBound(args []string) {
	path, err := exec.LookPath("taskset")
	check(err)
	processor := "0"
	if rank() == c.victim {
		processor = "1"
	}
	self, err := os.Executable()
	check(err)
	check(syscall.Exec(path, append([]string{"taskset", "-c", processor, self, "rank", "faulty"}, append(args, "bound")...), os.Environ()))
}

// compute is what a rank does before a call. In healthy jobs it may be much: a rank has ten
// times the work of the others, computes for 8 s, collects the garbage of a heap of 1 GiB, is
// stopped for 800 ms, or others use the processors.
func (c *faultCase) compute(own *rand.Rand, me, i int) {
	work := time.Duration(own.IntN(3000)) * time.Microsecond
	switch mine := c.want == 0 && me == c.victim; {
	case !mine:
	case c.seed%5 == 0:
		work = 30 * time.Millisecond
	case c.seed%5 == 1 && i == 5*c.at:
		work = 8 * time.Second
	case c.seed%5 == 2 && i%50 == 10:
		collectGarbage()
	case c.seed%5 == 3 && i%50 == 10:
		check(exec.Command("sh", "-c", fmt.Sprintf("kill -STOP %d; sleep 0.8; kill -CONT %[1]d", os.Getpid())).Start())
	case c.seed%5 == 4 && i == 0:
		startLoops(2)
	}
	if c.want == 0 && work > 3*time.Millisecond {
		for end := time.Now().Add(work); time.Now().Before(end); { // nobody waits for it
		}
		return
	}
	if c.want == 0 {
		work *= 20 // so that the job lasts
	}
	pause(work)
}

// collectGarbage fills a heap of 1 GiB with objects that point to each other, and collects it.
func collectGarbage() {
	type node struct {
		next *node
		_    [56]byte
	}
	var first *node
	for range 1 << 10 { // objects one by one take long on a busy machine
		many := make([]node, 1<<14)
		for i := range many {
			many[i].next, first = first, &many[i]
		}
	}
	runtime.GC()
	runtime.KeepAlive(first)
}

// startLoops starts processes that use the processor, until this one ends or some time is over.
func startLoops(n int) {
	runtime.LockOSThread() // the loops end with it
	for range n {
		cmd := exec.Command("timeout", "40", "sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
		check(cmd.Start())
	}
}

// goOn makes calls until the job is ended from outside.
func (c *faultCase) goOn(ctx context.Context, comm *planner.Comm) {
	runtime.LockOSThread()
	for i := 0; ; i++ {
		count := 1000
		switch {
		case c.bursts:
			count = 16 << 10
			if comm.Rank() == c.sleeper {
				pause(10 * time.Millisecond)
			}
		case c.cluster:
			count = 100_000 + 50_000*(i%5)
		default:
			useProcessor(4 * time.Millisecond)
		}
		if i == c.at && c.cluster && comm.Rank() == 0 {
			fmt.Println("begun")
		}
		if i == c.at && !c.cluster && comm.Rank() == c.victim {
			sayStruck()
			startLoops(6)
		}
		x, y := make([]int32, count), make([]int32, count*comm.Size())
		switch {
		case i%3 == 0 || c.bursts:
			check(planner.Allreduce(ctx, comm, x, x, tasks.Sum))
		case i%3 == 1:
			check(planner.Allgather(ctx, comm, x, y))
		default:
			check(planner.Alltoall(ctx, comm, y[:count/comm.Size()*comm.Size()], make([]int32, count/comm.Size()*comm.Size())))
		}
	}
}

// useProcessor computes until this thread has run for that long.
func useProcessor(long time.Duration) {
	var now, begin unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &begin))
	for now = begin; now.Nano()-begin.Nano() < long.Nanoseconds(); {
		check(unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now))
	}
}

// sayStruck tells when the fault begins.
func sayStruck() { fmt.Println("struck", time.Now().UnixNano()) }

// isStruck reports whether a rank is one that the fault happens on.
func (c *faultCase) isStruck(rank int) bool {
	return slices.Contains(c.blamed(), rank) || c.want == verdict.Computing
}

// call makes the i-th call of the program: all differ in their counts. more changes it.
func (c *faultCase) call(ctx context.Context, comm *planner.Comm, i, more int) error {
	draw := rand.New(rand.NewPCG(c.seed, uint64(100+i)))
	count := []int{1, 100, 20000}[draw.IntN(3)] + i
	root, kind, op := draw.IntN(c.ranks), draw.IntN(4), tasks.Max
	switch {
	case more > 0 && c.seed%3 == 0:
		kind, root = 0, (root+1)%c.ranks // or another collective
	case more > 0 && c.seed%3 == 1 && kind == 3:
		op = tasks.Min
	default:
		count += more
	}
	x, y := make([]int32, count), make([]int32, count*comm.Size())
	switch kind {
	case 0:
		return planner.Bcast(ctx, comm, x, root)
	case 1:
		return planner.Allreduce(ctx, comm, x, x, tasks.Sum)
	case 2:
		return planner.Allgather(ctx, comm, x, y)
	default:
		return planner.Reduce(ctx, comm, x, x, op, root)
	}
}

// strike lets the fault happen. It reports whether the call is not to be made.
func (c *faultCase) strike(ctx context.Context, comm *planner.Comm) bool {
	if comm.Rank() == c.victim {
		sayStruck()
	}
	switch c.name {
	case "killed":
		if c.seed%2 == 0 {
			os.Exit(0)
		}
		check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	case "stopped":
		check(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
		pause(forever) // the signal may come to another thread
	case "loops":
		for { // until the job is ended
			pause(time.Microsecond)
		}
	case "loops in an operation":
		one := []int32{1}
		return planner.Reduce(ctx, comm, one, one, tasks.UserOp("endless", true, func(a, b int32) int32 {
			for comm.Rank() == c.victim {
				pause(time.Millisecond)
			}
			return a + b
		}), c.victim) == nil
	case "differs":
		check(c.call(ctx, comm, c.at, 7))
		return true
	case "skips":
		if c.seed%2 == 0 { // or runs it twice
			check(c.call(ctx, comm, c.at, 0))
			return false
		}
		return true
	case "circle":
		c.meetInCircle(ctx, comm)
	}
	return false
}

// meetInCircle lets two ranks wait for each other: each receives before it sends, or each
// is in a call that the other one makes second.
func (c *faultCase) meetInCircle(ctx context.Context, comm *planner.Comm) {
	pair := c.blamed()
	if c.seed%2 == 1 {
		_, err := planner.Recv(ctx, comm, pair[0]+pair[1]-comm.Rank(), 3, make([]int32, 1))
		check(err)
		return
	}
	one, err := raw.Sub(comm, 0xc1, pair)
	check(err)
	other, err := raw.Sub(comm, 0xc2, pair)
	check(err)
	if comm.Rank() == pair[0] {
		one, other = other, one
	}
	check(planner.Barrier(ctx, one))
	check(planner.Barrier(ctx, other))
}
