package launch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func init() { rankPrograms["faulty"] = faulty }

// fault is what goes wrong in a job, and what is to be found.
type fault struct {
	name string
	want verdict.Class // 0: nothing is wrong
}

// faults are what TestVerdicts injects. A node that is cut off is TestCluster's.
var faults = []fault{
	{"killed", verdict.Died},
	{"exits", verdict.Died},
	{"stopped", verdict.Stopped},
	{"loops", verdict.Late},
	{"loops in an operation", verdict.Computing},
	{"differs", verdict.Mismatch},
	{"skips", verdict.Mismatch},
	{"circle", verdict.Deadlock},
	{"healthy", 0},
}

// faultCase is a job with a fault. It follows from its fault and seed alone.
type faultCase struct {
	fault
	seed   uint64
	opts   Options
	ranks  int
	calls  int
	at     int // the call
	victim int
}

func drawFault(f fault, seed uint64) faultCase {
	draw := rand.New(rand.NewPCG(seed, 1))
	c := faultCase{fault: f, seed: seed, ranks: 4 + draw.IntN(5), calls: 30}
	c.at, c.victim = 5+draw.IntN(20), draw.IntN(c.ranks)
	c.opts = Options{Ranks: c.ranks, Oversubscribe: true}
	if nodes := 1 + draw.IntN(4); nodes > 1 {
		var hosts []string
		for n := range nodes {
			hosts = append(hosts, fmt.Sprintf("n%d:%d", n, (c.ranks+n)/nodes))
		}
		c.opts.Hosts, c.opts.Launcher = strings.Join(hosts, ","), launcherLocal
	}
	return c
}

// stallAfter is Options.StallAfter of the ranks.
func (c *faultCase) stallAfter() time.Duration {
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		return 2 * time.Second
	}
	return time.Second
}

// blamed are the ranks that are to be found.
func (c *faultCase) blamed() []int {
	if c.name == "circle" {
		other := (c.victim + 1) % c.ranks
		return []int{min(c.victim, other), max(c.victim, other)}
	}
	return []int{c.victim}
}

// faulty plays a rank of the case with fault args[0] and seed args[1].
func faulty(args []string) {
	n, err := strconv.Atoi(args[0])
	check(err)
	seed, err := strconv.ParseUint(args[1], 10, 64)
	check(err)
	c := drawFault(faults[n], seed)
	ctx := context.Background()
	comm, err := planner.Join(ctx, &planner.Options{StallAfter: c.stallAfter()})
	check(err)
	own := rand.New(rand.NewPCG(seed, uint64(2+comm.Rank())))
	for i := range c.calls {
		time.Sleep(time.Duration(own.IntN(3000)) * time.Microsecond)
		if c.name == "healthy" && i == c.at && comm.Rank() == c.victim {
			time.Sleep(c.stallAfter() / 2) // it computes
		}
		if i == c.at && c.isStruck(comm.Rank()) && c.strike(ctx, comm) {
			continue
		}
		check(c.call(ctx, comm, i, 0))
	}
	check(comm.Close())
}

// isStruck reports whether a rank is one that the fault happens on.
func (c *faultCase) isStruck(rank int) bool {
	return slices.Contains(c.blamed(), rank) || c.want == verdict.Computing
}

// call makes the i-th call of the program: all differ in their counts. more changes it.
func (c *faultCase) call(ctx context.Context, comm *planner.Comm, i, more int) error {
	draw := rand.New(rand.NewPCG(c.seed, uint64(100+i)))
	count := []int{1, 100, 20000}[draw.IntN(3)] + i + more
	x, y := make([]int32, count), make([]int32, count*comm.Size())
	switch root := draw.IntN(c.ranks); draw.IntN(4) {
	case 0:
		return planner.BcastNow(ctx, comm, x, root)
	case 1:
		return planner.AllreduceNow(ctx, comm, x, x, tasks.Sum)
	case 2:
		return planner.AllgatherNow(ctx, comm, x, y)
	default:
		return planner.ReduceNow(ctx, comm, x, x, tasks.Max, root)
	}
}

// strike lets the fault happen. It reports whether the call is not to be made.
func (c *faultCase) strike(ctx context.Context, comm *planner.Comm) bool {
	if comm.Rank() == c.victim {
		fmt.Println("struck", os.Getpid())
	}
	switch c.name {
	case "killed":
		check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	case "exits":
		os.Exit(0)
	case "stopped":
		check(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
	case "loops":
		for n := 1; n != 0; n += 2 { // until the job is ended
			time.Sleep(time.Microsecond)
		}
	case "loops in an operation":
		one := []int32{1}
		return planner.ReduceNow(ctx, comm, one, one, tasks.UserOp("endless", true, func(a, b int32) int32 {
			for comm.Rank() == c.victim {
				time.Sleep(time.Millisecond)
			}
			return a + b
		}), c.victim) == nil
	case "differs":
		check(c.call(ctx, comm, c.at, 7))
		return true
	case "skips":
		return true
	case "circle":
		other := c.blamed()[0] + c.blamed()[1] - comm.Rank()
		_, err := planner.Recv(ctx, comm, other, 3, make([]int32, 1))
		check(err)
	}
	return false
}

// play runs the job until it ends or has given its verdict, and returns the first finding; nil
// if there is none.
func (c *faultCase) play(t *testing.T, dir string) (*verdict.Finding, string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dumps := filepath.Join(dir, "dumps")
	n := slices.Index(faults, c.fault)
	c.opts.Env = append(os.Environ(), planner.DumpDirVariable+"="+dumps, planner.DoorVariable+"="+filepath.Join(dir, "doors"))
	c.opts.Program = rankLine(t, "faulty", strconv.Itoa(n), strconv.FormatUint(c.seed, 10))
	var out buffer
	var watching sync.WaitGroup
	watching.Go(func() { // a job that stands still has to be ended
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dumps, "verdict.txt")); err == nil {
				time.Sleep(200 * time.Millisecond) // to be logged
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	_, err := Run(ctx, c.opts, strings.NewReader(""), &out, &out)
	cancel()
	watching.Wait()
	text := fmt.Sprintf("%s\n%v", out.String(), err)
	all, unread := door.ReadSnapshots(dumps)
	if unread != nil { // the launcher has ended the others before they knew
		if failed, ok := errors.AsType[*RankError](err); ok && failed.Signal != "" {
			return &verdict.Finding{Class: verdict.Died, Ranks: []int{failed.Rank}}, text
		}
		return nil, text
	}
	states, nodes := door.Merge(all)
	for _, s := range states {
		text += fmt.Sprintf("\nrank %d: %v", s.Rank, &s)
	}
	found := verdict.Diagnose(states, verdict.Options{Least: c.stallAfter() / 2, Nodes: nodes})
	if len(found) == 0 {
		return nil, text
	}
	if word := found[0].Class.String() + ": "; c.want > 0 && !isFailure(c.want) && !regexp.MustCompile(`verdict="`+word).MatchString(text) {
		t.Errorf("%s, seed %d: the job has not logged %s itself\n%s", c.name, c.seed, word, text)
	}
	return &found[0], text
}

// isFailure reports whether such a fault ends the job.
func isFailure(c verdict.Class) bool { return c == verdict.Died || c == verdict.Mismatch }

// Faults that are injected into jobs of random collectives are found by the job itself: their
// class, and the ranks to blame. Jobs in which nothing is wrong are left alone. With
// TIERFLOW_TEST_LONG there are 40 seeds of each, with TIERFLOW_TEST_SEEDS as many as that says,
// and a table of what was taken for what.
func TestVerdicts(t *testing.T) {
	seeds := 1
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		seeds = 40
	}
	if n, err := strconv.Atoi(os.Getenv("TIERFLOW_TEST_SEEDS")); err == nil {
		seeds = n
	}
	table := map[string]map[string]int{}
	var mu sync.Mutex
	var playing sync.WaitGroup
	slots := make(chan struct{}, 4)
	right := 0
	for _, f := range faults {
		table[f.name] = map[string]int{}
	}
	for _, f := range faults {
		for seed := range uint64(seeds) {
			slots <- struct{}{}
			dir, err := os.MkdirTemp("", "faults") // sockets have short names
			if err != nil {
				t.Fatal(err)
			}
			playing.Go(func() {
				defer os.RemoveAll(dir)
				defer func() { <-slots }()
				c := drawFault(f, seed+1)
				got, text := c.play(t, dir)
				mu.Lock()
				defer mu.Unlock()
				column := "nothing"
				if got != nil {
					if column = got.Class.String(); got.Class == c.want && !slices.Equal(got.Ranks, c.blamed()) {
						column += " of other ranks"
					}
				}
				table[f.name][column]++
				switch {
				case got == nil && c.want == 0, got != nil && got.Class == c.want && slices.Equal(got.Ranks, c.blamed()):
					right++
				case got == nil:
					t.Errorf("%s, seed %d: nothing found, want %v of %v\n%s", f.name, seed+1, c.want, c.blamed(), text)
				default:
					t.Errorf("%s, seed %d: found %v of %v, want %v of %v\n%s", f.name, seed+1, got, got.Ranks, c.want, c.blamed(), text)
				}
			})
		}
	}
	playing.Wait()
	for _, f := range faults {
		t.Logf("%-22s %v", f.name, table[f.name])
	}
	t.Logf("%d of %d right", right, seeds*len(faults))
}
