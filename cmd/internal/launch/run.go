package launch

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tierflow/tierflow/executor/door"
)

// Run runs one job and returns when all its processes have ended. The exit status is
// for the caller to end with. The error is nil exactly when the status is 0, and a
// *RankError when a rank failed. It says everything there is to say, over several
// lines at times. Run itself prints only the output of ranks and agents, and
// a line if nothing can be written to Options.DumpDir, so the caller prints the error last.
//
// The status is that of the RankError (128 + number for a signal); 124 for
// Options.Timeout; 2 for options that can't be; 127 and 126 when the program is missing or can't be run on a host;
// 125 for everything else.
//
// While it runs, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 go to all
// ranks. So ctx must not be tied to these signals. The first three end the job: no process
// is started any more, and a second SIGINT or SIGTERM, or the end of Options.Grace, kills
// the ranks. The status of such a job is never 0: it is a rank's, or 128 + number.
// When ctx ends, so does the job. Stdin is read for a host file named "-", else for the
// ranks of Options.Stdin; a read that is under way when the job ends is left to itself.
// nil is no input. One Run at a time per process.
func Run(ctx context.Context, opts Options, stdin io.Reader, stdout, stderr io.Writer) (exitStatus int, err error) {
	if err := checkSystem(); err != nil {
		return statusLauncher, err
	}
	began := time.Now()
	j, exitStatus, err := prepare(opts, stdin, stdout, stderr)
	if err != nil {
		return exitStatus, err
	}
	j.loop(ctx)
	exitStatus, err = j.result()
	if f := findDeath(err); f != nil && j.opts.DumpDir != "" {
		if wrong := door.KeepEnding(j.opts.DumpDir, began, f); wrong != nil {
			fmt.Fprintf(stderr, "tierflow: no snapshot could be kept: %v\n", wrong)
		}
	}
	return exitStatus, err
}

// prepare makes the job, with an agent started for every node that has ranks. With an error it returns the status.
func prepare(opts Options, stdin io.Reader, stdout, stderr io.Writer) (j *job, status int, err error) {
	if opts, err = opts.withDefaults(); err != nil {
		return nil, statusOptions, err
	}
	nodes, err := opts.hosts(context.Background(), stdin)
	if err != nil {
		return nil, statusLauncher, err
	}
	placed, err := place(nodes, opts.Ranks, opts.Map, opts.Oversubscribe)
	if err != nil {
		return nil, statusOptions, err
	}
	if opts.DumpDir != "" {
		if err := door.DropEnding(opts.DumpDir); err != nil {
			return nil, statusLauncher, fmt.Errorf("the folder for dumps: %w", err)
		}
	}
	j = newJob(opts, stdin, stdout, stderr)
	j.signals = notifyForwarded()
	j.dialAll(nodes, placed)
	return j, 0, nil
}
