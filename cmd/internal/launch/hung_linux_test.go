package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

func init() {
	rankPrograms["halts"] = halts
	rankPrograms["hangs"] = hangs
}

// hangs goes on until three ranks are there and one of them is a newcomer. One of the first hangs in its third step, or stops.
func hangs(args []string) {
	step, fresh := []float64{0}, int64(1)
	if os.Getenv("TIERFLOW_RESTARTS") == "" {
		fresh = 0
	}
	check(elastic.Run(context.Background(), nil, func(ctx context.Context, c *planner.Comm, _ *planner.Change) error {
		if _, err := elastic.Sync(ctx, c, uint64(step[0]), elastic.PartOf("step", step)); err != nil {
			return err
		}
		for {
			if err := c.Turn(ctx); err != nil {
				return err
			}
			if fresh == 0 && c.Rank() == 1 && c.Size() == 3 && step[0] == 2 {
				fmt.Println("hangs")
				if args[0] == "stop" {
					check(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
				}
				pause(forever)
			}
			all, err := planner.AllreduceValue(ctx, c, fresh, tasks.Max)
			if err != nil {
				return err
			}
			step[0]++
			if all > 0 && c.Size() == 3 {
				fmt.Printf("ends with %d ranks\n", c.Size())
				return nil
			}
			pause(time.Millisecond)
		}
	}))
}

// A process that hangs, or is stopped, is left out, then ended, and another one takes its place.
func TestOutcastsAreReplaced(t *testing.T) {
	for _, test := range []struct {
		how     string
		signals int // until it has ended
	}{{"hang", 1}, {"stop", 2}} {
		t.Run(test.how, func(t *testing.T) {
			t.Parallel() // it mostly waits
			out := &buffer{}
			j, _, err := prepare(Options{
				Ranks: 3, Oversubscribe: true, MaxRestarts: 1, Min: 2, Program: rankLine(t, "hangs", test.how),
				Env: append(os.Environ(), env.CallTimeout+"=2s"),
			}, nil, out, out)
			if err != nil {
				t.Fatal(err)
			}
			over := make(chan time.Time, test.signals) // the time of each has come
			for range test.signals {
				over <- time.Time{}
			}
			j.after = func(time.Duration) <-chan time.Time { return over }
			j.loop(t.Context())
			if status, err := j.result(); status != 0 || err != nil || strings.Count(out.String(), "ends with 3 ranks") != 3 {
				t.Errorf("status %d, %v:\n%s", status, err, out)
			}
			says(t, out.String(), `WARN ranks that hang are left out rank=[02] hung=\[1\]`, `\[tierflow run\] the others go on without rank 1 on host `, `\[tierflow run\] rank 1 on localhost: (exit status 2|ended by signal: .* \(status \d+\)); restart 1 of 1`)
		})
	}
}

// halts lets rank 2 stop while it is the way to rank 3. The others shrink until they can go on, and let it go on then.
func halts([]string) {
	ctx := context.Background()
	comm, err := planner.Join(ctx, nil)
	check(err)
	pids := make([]int64, comm.Size())
	check(planner.Allgather(ctx, comm, []int64{int64(os.Getpid())}, pids))
	me := comm.Rank()
	if me == 2 {
		goesOn := make(chan os.Signal, 1)
		signal.Notify(goesOn, syscall.SIGCONT)
		for _, other := range []int{0, 1, 3} { // they are through with the call
			_, err := planner.Recv(ctx, comm, other, 1, []byte{0})
			check(err)
		}
		check(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
		<-goesOn // the stop may come a little later
		_, err := comm.Shrink(ctx)
		fmt.Printf("rank %d hears %t: %v\n", me, errors.Is(err, planner.ErrExcluded), err)
		check(syscall.Kill(int(pids[0]), syscall.SIGUSR1))
		_ = comm.Close() // nobody waits for it any more
		return
	}
	check(planner.Send(ctx, comm, 2, 1, []byte{0}))
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := planner.Barrier(limited, comm); !planner.Recoverable(err) {
		check(fmt.Errorf("%w, want one after which ranks go on", err))
	}
	change, err := comm.Shrink(ctx)
	check(err)
	comm = change.Comm
	check(planner.Barrier(ctx, comm))
	fmt.Printf("rank %d goes on with %d, without %v\n", me, comm.Size(), change.Lost)
	if me == 0 {
		hasHeard := make(chan os.Signal, 1)
		signal.Notify(hasHeard, syscall.SIGUSR1)
		check(syscall.Kill(int(pids[2]), syscall.SIGCONT))
		<-hasHeard
	}
	check(planner.Barrier(ctx, comm)) // had they ended, rank 2 would be sure of that and go on alone
	check(comm.Close())
}

// A process that is stopped counts as dead after about ten seconds, though its connections stand and others are reached
// through it. When it goes on it hears that.
func TestStoppedCountsAsDead(t *testing.T) {
	t.Parallel() // it mostly waits
	r := run(t, Options{Hosts: "a:2,b:2", Launcher: "local", Oversubscribe: true, Env: os.Environ(), Timeout: forever, Program: rankLine(t, "halts")})
	r.want(t, 0)
	text := r.stdout.String()
	for _, rank := range []int{0, 1, 3} {
		says(t, text, fmt.Sprintf(`rank %d goes on with 3, without \[{2 (was lost: its library has not answered|others count it as lost)`, rank))
	}
	says(t, text, `rank 2 hears true: shrink: 3 of 4 ranks: the others have gone on without this rank, after: `)
	says(t, r.stderr.String(), `a rank counts as lost.* lost=2 why="its library has not answered`)
}
