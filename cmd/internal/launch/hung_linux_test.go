package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
)

func init() { rankPrograms["halts"] = halts }

// halts lets rank 2 stop while it is the way to rank 3. The others shrink until they can go on, and let it go on then.
func halts([]string) {
	ctx := context.Background()
	comm, err := planner.Join(ctx, &planner.Options{CallTimeout: time.Second})
	check(err)
	pids := make([]int64, comm.Size())
	check(planner.Allgather(ctx, comm, []int64{int64(os.Getpid())}, pids))
	me := comm.Rank()
	if me == 2 {
		check(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
		_, _, err := comm.Shrink(ctx)
		fmt.Printf("rank %d hears %t: %v\n", me, errors.Is(err, planner.ErrExcluded), err)
		_ = comm.Close() // nobody waits for it any more
		return
	}
	fmt.Printf("rank %d heard: %v\n", me, planner.Barrier(ctx, comm))
	comm, change, err := comm.Shrink(ctx)
	check(err)
	check(planner.Barrier(ctx, comm))
	fmt.Printf("rank %d goes on with %d, without %v\n", me, comm.Size(), change.Lost)
	if me == 0 {
		check(syscall.Kill(int(pids[2]), syscall.SIGCONT))
	}
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
		says(t, text, fmt.Sprintf(`rank %d heard: barrier: rank 2 `, rank), fmt.Sprintf(`rank %d goes on with 3, without \[{2 .*`, rank))
	}
	says(t, text, `rank 2 hears true: shrink: 3 of 4 ranks: the others have gone on without this rank, after: `)
	says(t, r.stderr.String(), `a rank counts as lost.* lost=2 why="its library has not answered`)
}
