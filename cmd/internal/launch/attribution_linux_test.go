package launch

import (
	"context"
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
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/draw"
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

// How large a burden is: the calls of each half, how late a rank comes to each, and how long the slow operation takes.
const (
	burdenCalls = 12
	lateFor     = 20 * time.Millisecond
	slowFor     = time.Microsecond
)

// play makes the calls of a rank. cut lets the link be cut and returns when it is; compute uses a processor. It returns for
// how long the rank itself has burdened the second half.
func (b *burden) play(ctx context.Context, c *planner.Comm, cut func() error, compute func(time.Duration)) (own time.Duration, err error) {
	slow := false
	op := tasks.Sum
	if b.name == "operation" {
		op = tasks.UserOp("slow", true, func(x, y float32) float32 {
			if slow {
				began := time.Now()
				compute(slowFor)
				own += time.Since(began)
			}
			return x + y
		})
	}
	for half := range 2 {
		x := make([]float32, b.count+half)
		sum, err := planner.PrepareAllreduce(ctx, c, x, x, op)
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
		for range burdenCalls {
			if err == nil {
				err = planner.Barrier(ctx, c)
			}
			began := time.Now()
			if b.name == "late" && half == 1 && c.Rank() == 3 {
				pause(lateFor)
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
		poll(ctx, func() bool { _, err := os.Stat(args[1]); return err != nil })
		return nil
	}, burn)
	check(err)
	if own > 0 {
		fmt.Println("burden", own.Nanoseconds())
	}
}

// burn uses a processor.
func burn(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
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

// onGoroutines plays the job on goroutine ranks, in a bubble: sleep is what a computation takes. It returns the job's trace.
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
			owns[r], errs[r] = b.play(t.Context(), c, func() error { net.cut.Store(true); return nil }, pause)
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

func readTraces(t testing.TB, dir string) *viz.JobTrace {
	j, err := draw.ReadTraces(dir)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// onCluster plays it on the nodes of a cluster.
func (b *burden) onCluster(t testing.TB, c *cluster, n int, hosts string) (j *viz.JobTrace, own time.Duration) {
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
func (c *cluster) setRate(t testing.TB, node int, rate string) {
	t.Helper()
	for _, words := range [][]string{{"-n", fmt.Sprint(c.name, node), "qdisc", "change", "dev", "eth0"}, {"-n", c.name + "br", "qdisc", "change", "dev", fmt.Sprint("port", node)}} {
		words = append(words, strings.Fields("root handle 1: tbf rate "+rate+" burst 20kb latency 50ms")...)
		if out, err := exec.Command("tc", words...).CombinedOutput(); err != nil {
			t.Fatalf("tc %q: %v\n%s", words, err, out)
		}
	}
}

// ofHalf returns the median time of a half's calls, and of the part that is due to the cause, ns.
func (b *burden) ofHalf(t testing.TB, j *viz.JobTrace, half int) (length, due int64) {
	t.Helper()
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
		if sum != int64(c.Length()) {
			t.Errorf("the parts of a call of %v are %v together", c.Length(), time.Duration(sum))
		}
		lengths, dues = append(lengths, sum), append(dues, mine)
	}
	if len(lengths) != burdenCalls {
		t.Fatalf("%d calls of %d: %s", len(lengths), burdenCalls, viz.JobText(j))
	}
	slices.Sort(lengths)
	slices.Sort(dues)
	return lengths[len(lengths)/2], dues[len(dues)/2]
}

// share compares what the burden has added to a call with what its cause is said to have: said / added. own is what the
// burdened rank says itself, of all calls together; 0 is for nothing: what calls are longer counts.
func (b *burden) share(t testing.TB, j *viz.JobTrace, own time.Duration) (ratio float64, second viz.Account) {
	t.Helper()
	before, due := b.ofHalf(t, j, 0)
	after, dueAfter := b.ofHalf(t, j, 1)
	added, said := after-before, dueAfter-due
	all := viz.Accounts(j)
	second = all[slices.IndexFunc(all, func(a viz.Account) bool { return strings.HasPrefix(a.Request, fmt.Sprintf("allreduce %d ", b.count+1)) })]
	if own > 0 {
		_, most := second.Of(b.cause)
		added, said = int64(own)/burdenCalls, most.NS/burdenCalls
	}
	t.Logf("%s: %v of %v a call; %v", b.cause, time.Duration(said), time.Duration(added), &second)
	return float64(said) / float64(added), second
}

// A rank that comes late, a link with a third of its rate and a slow operation are what calls are said to wait for, with
// their time: by the exact clock of a bubble, to a thousandth. Ends at the same time are told apart by goroutines' order.
func TestAttribution(t *testing.T) {
	for n := range burdens {
		b := &burdens[n]
		for _, topo := range []string{"2x2", "4x2"} {
			t.Run(b.name+"/"+topo, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					j, own := b.onGoroutines(t, topo)
					ratio, second := b.share(t, j, own)
					if ratio < 0.999 || ratio > 1.001 {
						t.Errorf("%s is said to have %.4f of what it has", b.cause, ratio)
					}
					if _, most := second.Of(b.cause); !strings.Contains(most.Where, b.where) {
						t.Errorf("%s is blamed on %s, want %s", b.cause, most.Where, b.where)
					}
					if shares := second.Percents(); shares[slices.Index(viz.Causes(), b.cause)] < slices.Max(shares) {
						t.Errorf("%s has not most of the time: %v", b.cause, &second)
					}
				})
			})
		}
	}
}

// Traces of processes between nodes have all calls, and the parts of a call are its time.
func TestTracesOfProcessesAreWhole(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "a")
	j, own := burdens[0].onCluster(t, c, 0, "node0:2,node1:2")
	burdens[0].share(t, j, own)
}

// BenchmarkAttribution reports which share of its time a burden is said to have, on processes of an emulated cluster.
func BenchmarkAttribution(bm *testing.B) {
	c := newCluster(bm, 4, "b")
	for n := range burdens {
		b := &burdens[n]
		for _, hosts := range []string{"node0:2,node1:2", "node0:2,node1:2,node2:2,node3:2"} {
			bm.Run(fmt.Sprintf("%s/%dx2", b.name, strings.Count(hosts, ",")+1), func(bm *testing.B) {
				var ratios []float64
				for bm.Loop() {
					j, own := b.onCluster(bm, c, n, hosts)
					ratio, _ := b.share(bm, j, own)
					ratios = append(ratios, ratio)
				}
				slices.Sort(ratios)
				bm.ReportMetric(ratios[0], "least-said/true")
				bm.ReportMetric(ratios[len(ratios)/2], "said/true")
				bm.ReportMetric(ratios[len(ratios)-1], "most-said/true")
			})
		}
	}
}
