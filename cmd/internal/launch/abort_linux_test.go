package launch

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

func init() { rankPrograms["aborts"] = aborts }

// aborts lets slot 0 end the job in some step, and with "silent" drop the error. With "after" slot 2 is killed before, and that
// step begins when another process has taken its place.
func aborts(args []string) {
	step := []float64{0}
	slot, restarts := os.Getenv(env.Rank), int64(0)
	if os.Getenv(env.Restarts) != "" {
		restarts = 1
	}
	after := slices.Contains(args, "after")
	err := elastic.Run(context.Background(), nil, func(ctx context.Context, c *planner.Comm, _ *planner.Change) error {
		if _, err := elastic.Sync(ctx, c, uint64(step[0]), elastic.PartOf("step", step)); err != nil {
			return err
		}
		for {
			if err := c.Turn(ctx); err != nil {
				return err
			}
			if after && slot == "2" && restarts == 0 && step[0] == 3 {
				check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
			}
			came, err := planner.AllreduceValue(ctx, c, restarts, tasks.Max)
			if err != nil {
				return err
			}
			if step[0]++; slot == "0" && step[0] > 5 && (came > 0 || !after) {
				err := c.Abort(errors.New("the disk is full"))
				if slices.Contains(args, "silent") {
					return nil
				}
				return err
			}
			pause(time.Millisecond)
		}
	})
	if err == nil {
		os.Exit(0)
	}
	if !slices.Contains(args, "silent") {
		check(err)
	}
	os.Exit(0) // all say that nothing was wrong
}

// A job that a rank ends fails with its reason, whatever its processes' statuses, whoever had died before, and nobody is started anew.
func TestAbortEndsTheJob(t *testing.T) {
	for _, words := range [][]string{nil, {"silent"}, {"after"}, {"after", "silent"}} {
		t.Run(strings.Join(words, " "), func(t *testing.T) {
			t.Parallel() // it mostly waits
			r := run(t, Options{
				Ranks: 4, Oversubscribe: true, MaxRestarts: 20, Min: 2, Timeout: forever, Env: os.Environ(),
				Program: rankLine(t, "aborts", words...),
			})
			status, restarts := 99, 0 // of check
			if slices.Contains(words, "silent") {
				status = 1
			}
			r.want(t, status, "rank 0 on localhost", "aborted: the disk is full")
			if slices.Contains(words, "after") {
				restarts = 1
			}
			if got := strings.Count(r.stderr.String(), "; restart "); got != restarts {
				t.Errorf("%d restarts, want %d:\n%s", got, restarts, &r.stderr)
			}
		})
	}
}
