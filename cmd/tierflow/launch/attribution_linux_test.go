package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/tierflow/draw"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
	"github.com/tierflow/tierflow/viz"
)

func init() { rankPrograms["burdened"] = burdened }

// burden is what takes the time of a job's calls: half of its allreduces are as they are, then half have
// the burden.
type burden struct {
	name  string
	cause viz.Cause
	where string // part of the place to blame
	count int    // elements of the first half's calls; the others have one more, and so another name
}

var burdens = []burden{
	{"late", viz.Late, "r3", 16384},       // rank 3 sleeps before each call
	{"link", viz.Wire, "node1", 65536},    // node 1's link has a third of its rate
	{"operation", viz.Reduce, "r2", 4096}, // on rank 2, a leader, the operation takes 1 µs for each element
}

// slowFor is how long the slow operation takes.
const slowFor = time.Microsecond

// burdenSize is how many calls each half has, and how late a rank comes to each. Few calls have a larger
// burden, so that other work on the machine doesn't hide it.
func burdenSize() (calls int, late time.Duration) {
	if isFull() {
		return 100, 3 * time.Millisecond
	}
	return 12, 20 * time.Millisecond
}

// play makes the calls of a rank. cut lets the link be cut and returns when it is. It returns for how long
// the rank itself has burdened the second half.
func (b *burden) play(ctx context.Context, c *planner.Comm, cut func() error) (own time.Duration, err error) {
	slow := false
	op := tasks.Sum
	if b.name == "operation" {
		op = tasks.UserOp("slow", true, func(x, y float32) float32 {
			began := time.Now()
			for slow && time.Since(began) < slowFor { // it uses its processor
			}
			return x + y
		})
	}
	calls, late := burdenSize()
	for half := range 2 {
		x := make([]float32, b.count+half)
		sum, err := planner.Allreduce(c, x, x, op)
		if err != nil {
			return 0, err
		}
		switch {
		case half == 0:
		case b.name == "link" && c.Rank() == 0:
			err = cut()
		case b.name == "operation" && c.Rank() == 2:
			slow = true
		}
		for range calls {
			if err == nil {
				err = planner.BarrierNow(ctx, c)
			}
			began := time.Now()
			if b.name == "late" && half == 1 && c.Rank() == 3 {
				time.Sleep(late)
				own += time.Since(began)
			}
			if err == nil {
				err = sum.Run(ctx)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return own, c.Close()
}

// burdened plays a rank of a job: args are the burden, and a file whose removal says that the link is cut.
func burdened(args []string) {
	n, err := strconv.Atoi(args[0])
	check(err)
	ctx := context.Background()
	comm, err := planner.Join(ctx, nil)
	check(err)
	own, err := burdens[n].play(ctx, comm, func() error {
		fmt.Println("cut")
		for {
			if _, err := os.Stat(args[1]); err != nil {
				return nil
			}
			time.Sleep(time.Millisecond)
		}
	})
	check(err)
	if own > 0 {
		fmt.Println("burden", own.Nanoseconds())
	}
}

// cutNetwork is a network, one of whose nodes gets a third of the rate at some time.
type cutNetwork struct {
	topology    *levels.Topology
	whole, slow *local.Network
	cut         atomic.Bool
}

func (n *cutNetwork) Due(from, to levels.Rank, bytes int64, now time.Time) time.Time {
	if n.cut.Load() && (n.topology.Node(from) == 1 || n.topology.Node(to) == 1) {
		return n.slow.Due(from, to, bytes, now)
	}
	return n.whole.Due(from, to, bytes, now)
}

// burdenRate is that of links, in bytes a second: 1 Gbit/s.
const burdenRate = 125e6

// onGoroutines plays the job on goroutine ranks and returns its trace.
func (b *burden) onGoroutines(t *testing.T, topo string) (j *viz.JobTrace, own time.Duration) {
	dir := t.TempDir()
	on := tasktest.Topology(t, topo)
	net := &cutNetwork{topology: on, whole: local.NewNetwork(on, burdenRate, 0), slow: local.NewNetwork(on, burdenRate/3, 0)}
	comms, err := planner.Local(topo, &planner.Options{Link: net, Trace: dir + ":every=1"})
	if err != nil {
		t.Fatal(err)
	}
	errs, owns := make([]error, len(comms)), make([]time.Duration, len(comms))
	var ranks sync.WaitGroup
	for r, c := range comms {
		ranks.Go(func() {
			owns[r], errs[r] = b.play(t.Context(), c, func() error { net.cut.Store(true); return nil })
		})
	}
	ranks.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
		own += owns[r]
	}
	return readTraces(t, dir), own
}

func readTraces(t *testing.T, dir string) *viz.JobTrace {
	j, err := draw.ReadTraces(dir)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// onCluster plays it on the nodes of a cluster.
func (b *burden) onCluster(t *testing.T, c *cluster, n int, hosts string) (j *viz.JobTrace, own time.Duration) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	if err := os.WriteFile(whole, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, out := c.start(t, Options{
		Hosts: hosts, Timeout: 5 * time.Minute,
		Program: rankLine(t, "burdened", strconv.Itoa(n), whole), TraceDir: dir, TraceEvery: 1,
	})
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for tick := time.NewTicker(time.Millisecond); ; {
		select {
		case err := <-ended:
			tick.Stop()
			if err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			for _, line := range strings.Split(out.String(), "\n") {
				if _, ns, ok := strings.Cut(line, "burden "); ok {
					more, err := strconv.Atoi(ns)
					if err != nil {
						t.Fatal(err)
					}
					own += time.Duration(more)
				}
			}
			return readTraces(t, dir), own
		case <-tick.C:
			if _, err := os.Stat(whole); err == nil && strings.Contains(out.String(), "cut") {
				c.setRate(t, 1, "333333kbit")
				defer c.setRate(t, 1, "1gbit")
				if err := os.Remove(whole); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// setRate changes the rate of a node's link, both ways.
func (c *cluster) setRate(t *testing.T, node int, rate string) {
	t.Helper()
	for _, words := range [][]string{{"-n", fmt.Sprint(c.name, node), "qdisc", "change", "dev", "eth0"}, {"-n", c.name + "br", "qdisc", "change", "dev", fmt.Sprint("port", node)}} {
		words = append(words, strings.Fields("root handle 1: tbf rate "+rate+" burst 20kb latency 50ms")...)
		if out, err := exec.Command("tc", words...).CombinedOutput(); err != nil {
			t.Fatalf("tc %q: %v\n%s", words, err, out)
		}
	}
}

// ofHalf returns the median time of a half's calls, and of the part that is due to the cause, ns.
func (b *burden) ofHalf(j *viz.JobTrace, half int) (length, due int64) {
	var lengths, dues []int64
	for i := range j.Calls {
		c := &j.Calls[i]
		if !strings.HasPrefix(c.Request, fmt.Sprintf("allreduce %d ", b.count+half)) {
			continue
		}
		sum, mine := int64(0), int64(0)
		for _, blame := range viz.Attribute(c, j.Nodes) {
			if sum += blame.NS; blame.Cause == b.cause {
				mine += blame.NS
			}
		}
		if sum == int64(c.Length()) { // all parts together are the call
			lengths, dues = append(lengths, sum), append(dues, mine)
		}
	}
	slices.Sort(lengths)
	slices.Sort(dues)
	if calls, _ := burdenSize(); len(lengths) != calls {
		return 0, 0
	}
	return lengths[len(lengths)/2], dues[len(dues)/2]
}

// judge plays the job and compares what the burden has added to the calls with what its cause is said to have. play
// returns what the burdened rank says itself, of all calls together. What is wrong is the error.
func (b *burden) judge(t *testing.T, play func() (*viz.JobTrace, time.Duration)) error {
	j, own := play()
	calls, _ := burdenSize()
	before, due := b.ofHalf(j, 0)
	after, dueAfter := b.ofHalf(j, 1)
	if before == 0 || after == 0 {
		t.Fatalf("calls are missing, or parts are not the whole: %s", viz.JobText(j))
	}
	injected, said := after-before, dueAfter-due
	all := viz.Accounts(j)
	second := &all[slices.IndexFunc(all, func(a viz.Account) bool { return strings.HasPrefix(a.Request, fmt.Sprintf("allreduce %d ", b.count+1)) })]
	_, most := second.Of(b.cause)
	if own > 0 {
		injected, said = int64(own)/int64(calls), most.NS/int64(calls)
	}
	ratio := float64(said) / float64(injected)
	t.Logf("%s: %v of %v a call, %.2f; %v", b.cause, time.Duration(said), time.Duration(injected), ratio, second)
	var wrong []error
	if !strings.Contains(most.Where, b.where) {
		wrong = append(wrong, fmt.Errorf("%s is blamed on %s, want %s", b.cause, most.Where, b.where))
	}
	if shares := second.Percents(); shares[slices.Index(viz.Causes(), b.cause)] < slices.Max(shares) {
		wrong = append(wrong, fmt.Errorf("%s has not most of the time: %v", b.cause, second))
	}
	if isFull() && (ratio < 0.9 || ratio > 1.1) {
		wrong = append(wrong, fmt.Errorf("%s is said to have %.2f of what it has", b.cause, ratio))
	}
	return errors.Join(wrong...)
}

// check plays the job and judges it. Beside other tests a machine may be too busy, once: without
// TIERFLOW_TEST_SEEDS a job with a wrong answer is played again.
func (b *burden) check(t *testing.T, play func() (*viz.JobTrace, time.Duration)) {
	err := b.judge(t, play)
	if err != nil && !isFull() {
		t.Logf("once more: %v", err)
		err = b.judge(t, play)
	}
	if err != nil {
		t.Error(err)
	}
}

// A rank that comes 3 ms late, a link with a third of its rate and a slow operation are what calls are
// said to wait for: on goroutine ranks, and on processes of an emulated cluster. With TIERFLOW_TEST_SEEDS
// there are 100 calls of each, and the time said is to be the injected one by 10 %.
func TestAttribution(t *testing.T) {
	for n := range burdens {
		b := &burdens[n]
		for _, topo := range []string{"2x2", "4x2"} {
			t.Run(b.name+"/goroutines/"+topo, func(t *testing.T) {
				b.check(t, func() (*viz.JobTrace, time.Duration) { return b.onGoroutines(t, topo) })
			})
		}
	}
	c := newCluster(t, 4, "a")
	for n := range burdens {
		b := &burdens[n]
		for _, hosts := range []string{"node0:2,node1:2", "node0:2,node1:2,node2:2,node3:2"} {
			t.Run(fmt.Sprintf("%s/processes/%dx2", b.name, strings.Count(hosts, ",")+1), func(t *testing.T) {
				b.check(t, func() (*viz.JobTrace, time.Duration) { return b.onCluster(t, c, n, hosts) })
			})
		}
	}
}
