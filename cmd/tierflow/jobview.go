package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/cmd/internal/draw"
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/launch"
	"github.com/tierflow/tierflow/cmd/internal/watch"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/viz"
)

// jobView shows a job of run when it is over.
type jobView struct {
	trace   string // FILE, or FILE:every=N
	report  string // FILE, or FILE:every=N
	machine string // file of the machine to predict calls on; empty: they aren't
	dump    string // a folder of snapshots; empty: none

	traceFile, reportFile string // without the numbers; empty: not asked for
	dir                   string // of the ranks' files; empty: nothing is to be shown
}

// usualEvery is of how many calls one is traced unless told.
const usualEvery = 16

// begin checks the flags and lets ranks keep their steps.
func (s *jobView) begin(o *launch.Options) (err error) {
	switch {
	case s.trace == "" && s.machine != "":
		return kit.Usagef("--machine %s: it is for what --trace shows; give --trace FILE as well", s.machine)
	case s.trace == "" && s.report == "":
		return nil
	}
	if _, err := kit.ReadMachine("machine", s.machine); err != nil { // before the job, not behind it
		return err
	}
	var every [2]int
	if s.traceFile, every[0], err = cutEvery("--trace", s.trace); err != nil {
		return err
	}
	if s.reportFile, every[1], err = cutEvery("--report", s.report); err != nil {
		return err
	}
	if every[0] > 0 && every[1] > 0 && every[0] != every[1] {
		return kit.Usagef("--trace %s and --report %s: both are of the same calls; give one number", s.trace, s.report)
	}
	if o.TraceEvery = max(every[0], every[1]); o.TraceEvery == 0 {
		o.TraceEvery = usualEvery
	}
	if s.dir, err = os.MkdirTemp("", "tierflow-traces"); err != nil {
		return err
	}
	o.TraceDir = s.dir
	if s.report != "" && s.dump == "" {
		s.dump = o.DumpDir
		if here := o.Hosts+o.Hostfile+o.HostsCommand == "" && o.Launcher == "" && os.Getenv("SLURM_JOB_ID") == ""; here && s.dump == "" { // on other hosts it would be left behind
			s.keepDumps(o, filepath.Join(s.dir, "dumps"))
		}
	}
	return nil
}

// keepDumps lets ranks keep their states when the job stands still or fails.
func (s *jobView) keepDumps(o *launch.Options, dir string) {
	s.dump, o.DumpDir = dir, dir
	o.Export = append(o.Export, env.DumpDir+"="+dir)
}

// cutEvery reads FILE or FILE:every=N. every is 0 if it isn't given.
func cutEvery(flag, value string) (file string, every int, err error) {
	file, number, given := strings.Cut(value, ":every=")
	if given {
		if every, err = strconv.Atoi(number); err != nil || every < 1 || every > 1<<20 {
			return "", 0, kit.Usagef("%s %s: allowed are a file, and a file with :every=1 to :every=%d", flag, value, 1<<20)
		}
	}
	if file == "" && value != "" {
		return "", 0, kit.Usagef("%s %s: it names no file", flag, value)
	}
	return file, every, nil
}

// end writes the files asked for, and a summary to stderr.
func (s *jobView) end(stdout, stderr io.Writer) error {
	if s.dir == "" {
		return nil
	}
	defer os.RemoveAll(s.dir)
	found := watch.FoundIn(s.dump)
	j, err := draw.ReadTraces(s.dir)
	if err != nil {
		err = fmt.Errorf("%s: no rank has closed the communicator that planner.Join returns, or none calls it", s.givenFlags())
		if s.reportFile != "" && len(found) > 0 { // a page of findings alone
			err = errors.Join(err, draw.WriteReport(stdout, s.reportFile, &viz.JobTrace{}, found))
		}
		return err
	}
	p, said, err := draw.Predict(j, s.machine, all.Submodules())
	_, wrong := stderr.Write(append(viz.JobText(j), said...))
	err = errors.Join(err, wrong)
	if s.traceFile != "" {
		err = errors.Join(err, draw.WriteTrace(stdout, s.traceFile, j, p))
	}
	if s.reportFile != "" {
		err = errors.Join(err, draw.WriteReport(stdout, s.reportFile, j, found))
	}
	return err
}

// givenFlags names the given flags.
func (s *jobView) givenFlags() string {
	var flags []string
	if s.trace != "" {
		flags = append(flags, "--trace "+s.traceFile)
	}
	if s.report != "" {
		flags = append(flags, "--report "+s.reportFile)
	}
	return strings.Join(flags, ", ")
}
