//go:build linux

package launch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

func init() {
	rankPrograms["conform"] = conform
	rankPrograms["sum"] = func([]string) { sums(100_000) }
	rankPrograms["large"] = func([]string) { sums(1 << 20) }
	rankPrograms["victim"] = victim
	rankPrograms["lazy"] = lazy
	rankPrograms["busy"] = busy
}

// plans forces every algorithm of every submodule at each level, under every
// shape, with few and many segments, on all collectives at once.
func plans() (texts []string) {
	for i := 0; ; i++ {
		text, fresh := "", false
		for _, coll := range tasks.Requestable() {
			shapes := tasks.ShapesOf(coll)
			p := tasks.Plan{Shape: shapes[i%len(shapes)], Segment: 16 << 10, Window: 1 + i%3}
			if i%2 == 1 {
				p.Segment = tasks.Whole
			}
			turn := i/len(shapes) + i%len(shapes) // a few plans have many algorithms, all of them all pairs
			for _, op := range tasks.Operations(coll, p.Shape) {
				for symbol, all := range map[byte][]tasks.Choice{'s': choices(coll, op, submodules.SharedNode), 'i': choices(coll, op, submodules.Anywhere)} {
					p = p.Set(tasks.Kind{Symbol: symbol, Op: op}.String(), all[turn%len(all)])
					fresh = fresh || i/len(shapes) < len(all)
				}
			}
			text += fmt.Sprintf("%v:%v;", coll, p)
		}
		if !fresh {
			return texts
		}
		texts = append(texts, text)
	}
}

// choices lists the algorithms for an operation of a collective; those that need shared
// memory only for reach submodules.SharedNode.
func choices(coll, op tasks.Collective, reach submodules.Reach) (list []tasks.Choice) {
	for _, sub := range all.Submodules() {
		for _, a := range sub.Algorithms() {
			if a.Does(op) && sub.Reach() <= reach && !(coll.HasData() && slices.Contains(a.Needs, submodules.NeedsNoData)) {
				list = append(list, tasks.Choice{Submodule: sub.Name(), Algorithm: a.Name})
			}
		}
	}
	return list
}

// conform enters a job for each plan, args[0] of them at most, and checks all
// collectives; args[1] is the largest number of elements.
func conform(args []string) {
	list := plans()
	most, err := strconv.Atoi(args[0])
	check(err)
	count, err := strconv.Atoi(args[1])
	check(err)
	list = list[:min(len(list), most)]
	for _, plan := range list {
		if err := conformTo(plan, count); err != nil {
			check(fmt.Errorf("plan %s: %w", plan, err))
		}
	}
	fmt.Println("conforms to", len(list) > 0)
}

func conformTo(plan string, count int) error {
	ctx, cancel := context.WithTimeout(context.Background(), forever)
	defer cancel()
	c, err := planner.Join(ctx, &planner.Options{Plan: plan})
	if err != nil {
		return err
	}
	for _, n := range []int{1, 700, count} {
		if err := collectives(ctx, c, n); err != nil {
			return fmt.Errorf("rank %d, %d elements: %w", c.Rank(), n, err)
		}
	}
	return c.Close()
}

// collectives runs and checks each of them on buffers of about n elements, apart
// and in place, with blocks that are equal and that differ.
func collectives(ctx context.Context, c *planner.Comm, n int) error {
	for _, coll := range tasks.Requestable() {
		if coll == tasks.Barrier {
			if err := planner.Barrier(ctx, c); err != nil {
				return err
			}
			continue
		}
		r := tasks.Request{Coll: coll, Count: int64(n), Type: tasks.Int32, Root: levels.Rank(c.Size() - 1)}
		if r.Blocks() {
			r.Count = int64(1 + n/c.Size())
		}
		if r.Reduces() {
			r.Op = tasks.Sum
		}
		all := []tasks.Request{r}
		if coll == tasks.Allgather || coll == tasks.ReduceScatter || coll == tasks.Alltoall {
			all = append(all, differing(r, c.Size()))
		}
		for _, r := range all {
			for _, r.InPlace = range []bool{false, true} {
				err := callOf[int32](ctx, []*planner.Comm{c}, r, n, 0)
				if coll == tasks.Alltoall && errors.Is(err, submodules.ErrUnsupported) {
					continue // some algorithms do equal blocks only, of groups of equal size
				}
				if err != nil {
					return fmt.Errorf("%v: %w", r, err)
				}
			}
		}
	}
	return nil
}

// differing is a request of blocks whose counts differ; every third rank has none.
func differing(r tasks.Request, size int) tasks.Request {
	if r.Coll == tasks.Alltoall {
		return differingByPair(r, size)
	}
	counts := make([]int, size)
	for i := range counts {
		counts[i] = (i + 2) % 3 * int(r.Count) / 2
	}
	var err error
	r.Counts, err = tasks.NewCounts(counts)
	check(err)
	if r.Count = r.Counts.Max(); r.Count == 0 {
		r.Counts = tasks.Counts{}
	}
	return r
}

// sums runs the collectives on n elements of 4 bytes under the built-in plan and
// says so.
func sums(n int) {
	ctx, cancel := context.WithTimeout(context.Background(), forever)
	defer cancel()
	c, err := planner.Join(ctx, nil)
	check(err)
	began := time.Now()
	check(collectives(ctx, c, n))
	fmt.Printf("rank %d of %d on %d nodes is content after %v\n", c.Rank(), c.Size(), c.Topology().Nodes(), time.Since(began))
	check(c.Close())
}

// victim runs collectives until one fails, and says when and how: allreduces, or what
// args[1] names. Rank args[0] kills itself in the middle.
func victim(args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), forever)
	defer cancel()
	c, err := planner.Join(ctx, nil)
	check(err)
	col, err := makeLong(ctx, c, args[1:])
	check(err)
	check(col.Run(ctx))
	fmt.Println("has begun")
	if strconv.Itoa(c.Rank()) == args[0] {
		time.AfterFunc(200*time.Millisecond, func() {
			fmt.Println("dies at", time.Now().UnixNano())
			check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		})
	}
	for err == nil {
		err = col.Run(ctx)
	}
	seen := time.Now()
	var peer *planner.PeerError
	if !errors.As(err, &peer) {
		check(fmt.Errorf("rank %d: %w", c.Rank(), err))
	}
	again := col.Run(ctx)
	if !errors.Is(again, planner.ErrBroken) {
		check(fmt.Errorf("the next call: %w", again))
	}
	_ = c.Close() // a neighbour in the control tree may be gone
	fmt.Printf("rank %d blames %d at %d, has closed\n", c.Rank(), peer.Rank, seen.UnixNano())
}

// makeLong prepares a collective that takes some time: an alltoallv of blocks that differ if
// args name one, else an allreduce.
func makeLong(ctx context.Context, c *planner.Comm, args []string) (*planner.Collective, error) {
	if len(args) == 0 || args[0] != "alltoallv" {
		buf := make([]int32, 300_000)
		return planner.PrepareAllreduce(ctx, c, buf, buf, tasks.Max)
	}
	counts, sum := make([]int, c.Size()), 0
	for other := range counts {
		counts[other] = 50_000 * ((c.Rank() + other) % 3) // the same both ways
		sum += counts[other]
	}
	return planner.PrepareAlltoallv(ctx, c, make([]int32, sum), counts, make([]int32, sum), counts)
}

// lazy prints the processor time of an idle rank, and of one that waits in a call for
// a second.
func lazy([]string) {
	ctx, cancel := context.WithTimeout(context.Background(), forever)
	defer cancel()
	c, err := planner.Join(ctx, nil)
	check(err)
	check(planner.Barrier(ctx, c))
	before := cpuTime()
	pause(time.Second)
	idle := cpuTime() - before
	check(planner.Barrier(ctx, c))
	if c.Rank() == c.Size()-1 {
		pause(time.Second)
	}
	before = cpuTime()
	check(planner.Barrier(ctx, c))
	fmt.Printf("rank %d: idle %d us, waiting %d us\n", c.Rank(), idle.Microseconds(), (cpuTime() - before).Microseconds())
	check(c.Close())
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// busy runs args[0] allreduces and says how long one takes.
func busy(args []string) {
	n, err := strconv.Atoi(args[0])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), forever)
	defer cancel()
	c, err := planner.Join(ctx, nil)
	check(err)
	buf := make([]int32, 1000)
	col, err := planner.PrepareAllreduce(ctx, c, buf, buf, tasks.Max)
	check(err)
	check(col.Run(ctx))
	fmt.Println("is busy")
	began := time.Now()
	for range n {
		check(col.Run(ctx))
	}
	fmt.Printf("rank %d: %v each\n", c.Rank(), time.Since(began)/time.Duration(n))
	check(c.Close())
}

// count is how often a pattern occurs.
func count(text, pattern string) int {
	return len(regexp.MustCompile(pattern).FindAllString(text, -1))
}

// Algorithms under every shape, between processes of one node and of two; with
// TIERFLOW_TEST_LONG every algorithm under every shape.
func TestCollectivesConform(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"one node":  {Ranks: 4},
		"two nodes": {Hosts: "a:2,b:2", Launcher: "local"},
	} {
		t.Run(name, func(t *testing.T) {
			most := "24"
			switch {
			case testing.Short():
				most = "4"
			case os.Getenv("TIERFLOW_TEST_LONG") != "":
				most = "1000"
			}
			o.Program = rankLine(t, "conform", most, "30000")
			r := run(t, o)
			r.want(t, 0)
			if got := count(r.stdout.String(), "conforms to true"); got != 4 {
				t.Errorf("%d ranks conform:\n%s%s", got, r.stdout.String(), r.stderr.String())
			}
		})
	}
}

// More ranks than cores: nobody starves.
func TestCollectivesOversubscribed(t *testing.T) {
	r := run(t, Options{Ranks: 8, Program: rankLine(t, "busy", "300")})
	r.want(t, 0)
	if got := count(r.stdout.String(), " each"); got != 8 {
		t.Errorf("%d ranks ended:\n%s", got, r.stdout.String())
	}
	t.Log(strings.SplitN(r.stdout.String(), "\n", 2)[0])
}

// Ranks in no call take no processor time; those that wait long, little.
func TestCollectivesIdle(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"shared memory": {Ranks: 3}, "TCP": {Hosts: "a:1,b:1,c:1", Launcher: "local"}} {
		o.Program = rankLine(t, "lazy")
		r := run(t, o)
		r.want(t, 0)
		lines := regexp.MustCompile(`rank (\d): idle (\d+) us, waiting (\d+) us`).FindAllStringSubmatch(r.stdout.String(), -1)
		if len(lines) != 3 {
			t.Fatalf("%s: %s", name, r.stdout.String())
		}
		for _, l := range lines {
			idle, _ := strconv.Atoi(l[2])
			waiting, _ := strconv.Atoi(l[3])
			t.Logf("%s: %s", name, l[0])
			// One that spins takes all of a second, one that sleeps some milliseconds: many
			// more with the race detector on a busy machine.
			if idle > 20_000 || waiting > 500_000 {
				t.Errorf("%s: rank %s took %d us of a second idle and %d us waiting", name, l[1], idle, waiting)
			}
		}
	}
}

// byHand starts a rank program once for each environment, without a launcher, and
// returns what they print when all have ended.
func byHand(t testing.TB, environments [][]string, program ...string) (out string, errs []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), forever)
	defer cancel()
	var outs []*buffer
	var cmds []*exec.Cmd
	for _, env := range environments {
		line := rankLine(t, program[0], program[1:]...)
		cmd := exec.CommandContext(ctx, line[0], line[1:]...)
		cmd.Env = append(os.Environ(), env...)
		b := &buffer{}
		cmd.Stdout, cmd.Stderr = b, b
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		outs, cmds = append(outs, b), append(cmds, cmd)
	}
	for i, cmd := range cmds {
		errs = append(errs, cmd.Wait())
		out += outs[i].String()
	}
	return out, errs
}

// freePort is one that nobody listens on for now. It is below the ports that the kernel
// gives to others meanwhile.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(20_000 + rand.IntN(10_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port of 100 is free")
	return ""
}

// tierflowVariables is the environment of each of n ranks, perNode on each node.
func tierflowVariables(t testing.TB, n, perNode int) (environments [][]string) {
	at := "127.0.0.1:" + freePort(t)
	for r := range n {
		environments = append(environments, []string{
			fmt.Sprint("TIERFLOW_RANK=", r), fmt.Sprint("TIERFLOW_SIZE=", n), "TIERFLOW_RENDEZVOUS=" + at,
			"TIERFLOW_SECRET=by hand", fmt.Sprint("TIERFLOW_NODE=node", r/perNode),
		})
	}
	return environments
}

// Two commands typed by hand, and two that torchrun would start, are a job too.
func TestCollectivesByHand(t *testing.T) {
	port := freePort(t)
	var torch [][]string
	for r := range 2 {
		torch = append(torch, []string{
			fmt.Sprint("RANK=", r), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "TIERFLOW_SECRET=none",
		})
	}
	for name, env := range map[string][][]string{"tierflow": tierflowVariables(t, 2, 2), "torchrun": torch} {
		out, errs := byHand(t, env, "sum")
		if err := errors.Join(errs...); err != nil || count(out, "is content") != 2 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// Ranks of torchrun meet though somebody else listens at MASTER_PORT: torchrun itself with its default rendezvous, or
// torch.distributed in rank 0's process, which the ranks find there if they know nothing of torchrun.
func TestCollectivesBesideTorch(t *testing.T) {
	store, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	_, port, _ := net.SplitHostPort(store.Addr().String())
	for _, id := range []string{"none", ""} {
		var ranks [][]string
		for r := range 3 {
			ranks = append(ranks, []string{
				fmt.Sprint("RANK=", r), "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "TORCHELASTIC_RUN_ID=" + id, "TIERFLOW_SECRET=of a test",
			})
		}
		out, errs := byHand(t, ranks, "sum")
		if err := errors.Join(errs...); err != nil || count(out, "is content") != 3 {
			t.Errorf("run id %q: %v\n%s", id, err, out)
		}
	}
}

// A rank that is killed is named by all others.
func TestCollectivesKilledRank(t *testing.T) {
	t.Parallel()
	for _, perNode := range []int{4, 2, 1} {
		for _, victim := range []int{3, 0} {
			t.Run(fmt.Sprintf("%d of %d per node", victim, perNode), func(t *testing.T) {
				coll := []string{"allreduce", "alltoallv"}[(perNode/2+victim)%2] // both on one node and on several
				out, errs := byHand(t, tierflowVariables(t, 4, perNode), "victim", strconv.Itoa(victim), coll)
				if blames := count(out, fmt.Sprintf(`rank \d blames %d at .*, has closed`, victim)); count(out, "dies") != 1 || blames != 3 || errs[victim] == nil {
					t.Errorf("%v\n%s", errs, out)
				}
			})
		}
	}
}

// BenchmarkKilledRank reports after how long the others know of a rank that is killed.
func BenchmarkKilledRank(b *testing.B) {
	for _, perNode := range []int{4, 1} {
		b.Run(fmt.Sprint(perNode, " a node"), func(b *testing.B) {
			var after []float64 // ms
			for b.Loop() {
				out, errs := byHand(b, tierflowVariables(b, 4, perNode), "victim", "3", "allreduce")
				dead := regexp.MustCompile(`dies at (\d+)`).FindStringSubmatch(out)
				if dead == nil {
					b.Fatalf("%v\n%s", errs, out)
				}
				at, _ := strconv.ParseInt(dead[1], 10, 64)
				for _, m := range regexp.MustCompile(`blames 3 at (\d+)`).FindAllStringSubmatch(out, -1) {
					seen, _ := strconv.ParseInt(m[1], 10, 64)
					after = append(after, float64(seen-at)/1e6)
				}
			}
			slices.Sort(after)
			b.ReportMetric(after[len(after)/2], "p50-ms")
			b.ReportMetric(after[len(after)*99/100], "p99-ms")
		})
	}
}

// A launcher that is killed leaves no rank, and no file of shared memory.
func TestCollectivesKilledLauncher(t *testing.T) {
	before := sharedFiles(t)
	mark := marked(t)
	cmd, out := startLauncher(t, Options{Ranks: 4, Program: append(rankLine(t, "busy"), "100000000", mark)})
	out.awaitLong(t, 4, "is busy")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	wantProcesses(t, mark, 0)
	if after := sharedFiles(t); after != before {
		t.Errorf("%d files of shared memory before, %d after\n%s", before, after, out.String())
	}
}

// sharedFiles counts the files in shared memory that tierflow made; tests of other packages
// start other libraries, whose files come and go.
func sharedFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/dev/shm")
	if err != nil {
		t.Skip("no /dev/shm to look at: ", err)
	}
	n := 0
	for _, f := range files {
		own := strings.Contains(f.Name(), "tierflow")
		if own && filepath.Join("/dev/shm", f.Name()) != door.Folder("") { // where jobs of other tests are too
			n++
		}
	}
	return n
}

// differingByPair is a request of blocks of which every third pair has none; those of a pair
// are the same both ways.
func differingByPair(r tasks.Request, size int) tasks.Request {
	rows := make([][]int, size)
	for from := range rows {
		for to := range size {
			rows[from] = append(rows[from], (from+to+2)%3*int(r.Count)/2)
		}
	}
	var err error
	r.Matrix, err = tasks.NewMatrix(rows)
	check(err)
	if r.Count = r.Matrix.Max(); r.Count == 0 {
		r.Matrix = tasks.Matrix{}
	}
	return r
}
