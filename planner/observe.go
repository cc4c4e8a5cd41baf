package planner

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
)

// observe starts the traces, profile, recordings and dumps that the options or the environment
// ask for, in a job that is managed or not. job names it on all ranks; empty: all are in this process.
func (o *settings) observe(w *world, managed bool, job string, t *levels.Topology) error {
	w.log = o.logger()
	if err := o.trace(w, job, t); err != nil {
		return err
	}
	if w.Endpoint(0) != nil {
		var err error
		if w.calls, err = o.profile(t); err != nil {
			return err
		}
	}
	if o.Recorder == "" {
		w.recordByDoor()
	} else if err := w.Record(o.Recorder); err != nil {
		return fmt.Errorf("%s: %w", o.origin["Recorder"], err)
	}
	var err error
	if w.nans, err = o.looksForNaN(); err != nil {
		return err
	}
	prints, goesOn, err := o.dumps(managed)
	if prints && err == nil {
		w.quiet = w.DumpOnQuit(os.Stderr, goesOn)
	}
	return err
}

// mostEvery bounds the calls from one traced call to the next.
const mostEvery = 1 << 20

// usualEvery is their number unless one is given.
const usualEvery = 16

// trace lets the ranks of a world keep steps, if they are asked to.
func (o *settings) trace(w *world, job string, t *levels.Topology) error {
	text, origin := o.Trace, o.origin["Trace"]
	if text == "" {
		return nil
	}
	dir, number, given := strings.Cut(text, ":every=")
	every := usualEvery
	if given {
		var err error
		if every, err = strconv.Atoi(number); err != nil || every < 1 || every > mostEvery {
			return fmt.Errorf("%s=%q; allowed are a folder, and a folder with :every=1 to :every=%d", origin, text, mostEvery)
		}
	}
	if dir == "" {
		return fmt.Errorf("%s=%q; it names no folder", origin, text)
	}
	var nodes []string
	for r := range levels.Rank(t.Size()) {
		nodes = append(nodes, t.NodeName(r))
	}
	if err := w.Trace(executor.TraceOptions{Dir: dir, Every: every, Job: cmp.Or(job, drawName()), Nodes: nodes}); err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	return nil
}

// recorderPath returns the absolute name of a rank's recording; empty: it has none of its own.
func (o *settings) recorderPath(rank int) string {
	if o.Recorder == "" {
		return ""
	}
	path := strings.ReplaceAll(o.Recorder, "%r", strconv.Itoa(rank))
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
