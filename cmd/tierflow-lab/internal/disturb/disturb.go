// Package disturb takes the processor from a rank of a job at random moments. The job's
// programs may be of any library.
package disturb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels/join/env"
)

// disturbing is the command.
type disturbing struct {
	rank  int
	noise Noise
	of    int // the process that is stopped; 0: the program is yet to start
}

// Noise says how a process is disturbed.
type Noise struct {
	Lasting time.Duration `json:"lasting_ns"` // of each stop
	Share   float64       `json:"share"`      // of the time in which the process is stopped
}

// Limits of a disturbance. Shorter stops are less than a timer's inaccuracy.
const (
	leastStop = 20 * time.Microsecond
	mostStop  = time.Second
	mostShare = 0.9
)

// Check complains about values out of bounds, under the names of two flags.
func (n Noise) Check(lasting, share string) error {
	if n.Lasting < leastStop || n.Lasting > mostStop {
		return kit.Usagef("--%s %v: want %v to %v", lasting, n.Lasting, leastStop, mostStop)
	}
	if !(n.Share > 0 && n.Share <= mostShare) {
		return kit.Usagef("--%s %v: want above 0 and at most %v of the time", share, n.Share, mostShare)
	}
	return nil
}

// Words returns the words before a program by which it is disturbed on a rank; lab is this program.
func (n Noise) Words(lab string, rank int) []string {
	return append([]string{lab, "disturb", "--rank", strconv.Itoa(rank)}, append(n.flags(), "--")...)
}

// flags returns the flags of the command.
func (n Noise) flags() []string {
	return []string{"--lasting", n.Lasting.String(), "--share", strconv.FormatFloat(n.Share, 'g', -1, 64)}
}

// Command returns disturb.
func Command() *cobra.Command {
	b := &disturbing{}
	c := &cobra.Command{
		Use:   "disturb [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Run a program, one of whose ranks loses its processor at times",
		Long: `Runs a program as a rank of whatever job this process was started in. On one of the
ranks it stops the program at random moments, each time for --lasting. So a machine
behaves whose system or daemons take a processor at times. Another process sends
SIGSTOP and SIGCONT, so programs of all libraries are disturbed alike. The moments are
the same in each run. They are independent: the time between stops is exponentially
distributed.

peers --noise measures collectives of several libraries in this way.`,
		Example: `  tierflow run -n 2 -- tierflow-lab disturb -- tierflow bench coll allreduce
  mpirun -n 4 tierflow-lab disturb --rank 1 --lasting 200us --share 0.05 -- ./program`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, words []string) error {
			if err := b.read(words); err != nil {
				return err
			}
			if b.of != 0 {
				return b.noise.stopAtTimes(c.Context(), b.of)
			}
			return b.start(words)
		},
	}
	f := c.Flags()
	f.IntVar(&b.rank, "rank", 0, "the rank that is disturbed")
	f.DurationVar(&b.noise.Lasting, "lasting", time.Millisecond, "length of each stop")
	f.Float64Var(&b.noise.Share, "share", 0.1, "share of the time in which the rank is stopped")
	f.IntVar(&b.of, "of", 0, "the process to stop")
	if err := f.MarkHidden("of"); err != nil {
		panic(err) // the flag is there
	}
	return c
}

// read checks all arguments.
func (b *disturbing) read(words []string) error {
	if err := b.noise.Check("lasting", "share"); err != nil {
		return err
	}
	if b.rank < 0 {
		return kit.Usagef("--rank %d: want 0 or more", b.rank)
	}
	if len(words) == 0 && b.of == 0 {
		return kit.Usagef("want a program to run, behind --")
	}
	return nil
}

// rankVariables are those by which launchers tell a process its rank.
var rankVariables = []string{env.Rank, "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}

// launchedRank returns the rank of this process in its job.
func launchedRank() (int, error) {
	for _, name := range rankVariables {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		rank, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("%s=%q: want a number, this process's rank", name, text)
		}
		return rank, nil
	}
	return 0, kit.Usagef("this process is no rank of a job: start it with tierflow run or another launcher")
}

// start starts the disturber on its rank, and becomes the program.
func (b *disturbing) start(words []string) error {
	rank, err := launchedRank()
	if err != nil {
		return err
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return err
	}
	if rank == b.rank {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program, which disturbs the other: %w", err)
		}
		disturber := exec.Command(self, append([]string{"disturb", "--of", strconv.Itoa(os.Getpid())}, b.noise.flags()...)...)
		if err := disturber.Start(); err != nil {
			return fmt.Errorf("start what disturbs the program: %w", err)
		}
	}
	if err := syscall.Exec(path, words, os.Environ()); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// stopAtTimes stops the parent process again and again until that ends. It leaves the
// parent running.
func (n Noise) stopAtTimes(ctx context.Context, parent int) error {
	moments := rand.New(rand.NewPCG(20, 1)) // the same ones for all libraries
	between := float64(n.Lasting) * (1 - n.Share) / n.Share
	for {
		if err := sleep(ctx, time.Duration(between*moments.ExpFloat64())); err != nil {
			return err
		}
		if os.Getppid() != parent {
			return nil // it has ended, and its number may be another's
		}
		if err := stopProcess(parent); err != nil {
			return err
		}
		err := sleep(ctx, n.Lasting)
		if err := errors.Join(err, continueProcess(parent)); err != nil {
			return err
		}
	}
}

// sleep returns after d, or with the cause when ctx ends before that.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
