package trials

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

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
)

// benchDisturb is the command disturb.
type benchDisturb struct {
	rank  int
	noise noise
	of    int // the process that is stopped; 0: the program is yet to start
}

// noise is what takes the processor from a process.
type noise struct {
	lasting time.Duration // of each stop
	share   float64       // of the time, between 0 and 1
}

func disturbCommand() *cobra.Command {
	b := &benchDisturb{}
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
	f.DurationVar(&b.noise.lasting, "lasting", time.Millisecond, "length of each stop")
	f.Float64Var(&b.noise.share, "share", 0.1, "share of the time in which the rank is stopped")
	f.IntVar(&b.of, "of", 0, "the process to stop")
	if err := f.MarkHidden("of"); err != nil {
		panic(err) // the flag is there
	}
	return c
}

// Limits of a disturbance. Shorter stops are less than a timer's inaccuracy.
const (
	leastStop = 20 * time.Microsecond
	mostStop  = time.Second
	mostShare = 0.9
)

// read checks all arguments.
func (b *benchDisturb) read(words []string) error {
	if b.noise.lasting < leastStop || b.noise.lasting > mostStop {
		return kit.Usagef("--lasting %v: want %v to %v", b.noise.lasting, leastStop, mostStop)
	}
	if !(b.noise.share > 0 && b.noise.share <= mostShare) {
		return kit.Usagef("--share %v: want above 0 and at most %v of the time", b.noise.share, mostShare)
	}
	if b.rank < 0 {
		return kit.Usagef("--rank %d: want 0 or more", b.rank)
	}
	if len(words) == 0 && b.of == 0 {
		return kit.Usagef("want a program to run, behind --")
	}
	return nil
}

// rankVariables are those in which launchers tell a process its rank.
var rankVariables = []string{"TIERFLOW_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}

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

// start becomes the program, after it has started what disturbs it.
func (b *benchDisturb) start(words []string) error {
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
		disturber := exec.Command(self, "disturb", "--of", strconv.Itoa(os.Getpid()),
			"--lasting", b.noise.lasting.String(), "--share", strconv.FormatFloat(b.noise.share, 'g', -1, 64))
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
func (n noise) stopAtTimes(ctx context.Context, parent int) error {
	moments := rand.New(rand.NewPCG(20, 1)) // the same ones for all libraries
	between := float64(n.lasting) * (1 - n.share) / n.share
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
		err := sleep(ctx, n.lasting)
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
