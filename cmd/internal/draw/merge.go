package draw

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/viz"
)

// ReadTraces reads the files of a job's ranks in a folder and makes one trace of them.
func ReadTraces(dir string) (*viz.JobTrace, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var traces []*trace.File
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".trace" {
			continue
		}
		name := filepath.Join(dir, entry.Name())
		data, err := files.Read(name, trace.MaxBytes)
		if err != nil {
			return nil, err
		}
		f, err := trace.ReadFile(name, data)
		if err != nil {
			return nil, err
		}
		traces = append(traces, f)
	}
	if len(traces) == 0 {
		return nil, fmt.Errorf("%s has no file r0.trace or of another rank: ranks write them when they close the communicator that Join has returned", dir)
	}
	return viz.MergeTraces(traces)
}

// WriteTrace writes a job's trace for ui.perfetto.dev to a file, - for standard output;
// compressed if its name ends in .gz. p is beside it; nil: nothing is predicted.
func WriteTrace(stdout io.Writer, name string, j *viz.JobTrace, p *viz.Prediction) error {
	text := viz.JobPerfetto(j, p)
	if strings.HasSuffix(name, ".gz") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(text)
		if err = errors.Join(err, z.Close()); err != nil {
			return err
		}
		text = b.Bytes()
	}
	return kit.WriteOutput(stdout, name, text)
}

// runMerge is trace --merge.
func (r *tracing) runMerge(c *cobra.Command) error {
	for _, name := range append([]string{"recorder", "last", "path"}, runFlags...) {
		if c.Flags().Changed(name) {
			return kit.Usagef("--%s goes not with --merge, which reads files and runs nothing", name)
		}
	}
	if err := r.checkFormat(); err != nil {
		return err
	}
	if ext := filepath.Ext(r.out); r.format == "perfetto" && (ext == ".html" || ext == ".htm") {
		return kit.Usagef("-o %s: a trace is JSON, as in trace.json or trace.json.gz; --report writes a page of HTML", r.out)
	}
	if err := kit.CheckOutput("report", r.report); err != nil {
		return err
	}
	pick, err := parseCalls(r.calls)
	if err != nil {
		return err
	}
	j, err := ReadTraces(r.merge)
	if err != nil {
		return err
	}
	pick(j)
	p, said, err := Predict(j, r.machine, r.reg)
	if err != nil {
		return err
	}
	said = append(viz.JobText(j), said...)
	if r.report != "" {
		if err := WriteReport(c.OutOrStdout(), r.report, j, nil); err != nil {
			return err
		}
	}
	if r.format == "text" {
		return kit.WriteOutput(c.OutOrStdout(), r.out, said)
	}
	if r.out != "" {
		if err := WriteTrace(c.OutOrStdout(), r.out, j, p); err != nil {
			return err
		}
	}
	_, err = c.ErrOrStderr().Write(said)
	return err
}

// parseCalls reads --calls: 20 are the longest, 100-119 those by their place in time.
func parseCalls(text string) (pick func(j *viz.JobTrace), err error) {
	if text == "" {
		return func(*viz.JobTrace) {}, nil
	}
	first, last, both := strings.Cut(text, "-")
	from, bad := strconv.Atoi(first)
	if !both && bad == nil && from > 0 {
		return func(j *viz.JobTrace) { j.Longest(from) }, nil
	}
	to, worse := strconv.Atoi(last)
	if bad != nil || worse != nil || from < 0 || to < from {
		return nil, kit.Usagef("--calls %q: give a number from 1 on for the longest calls, such as 20, or a range in the order of time from 0 on, such as 100-119", text)
	}
	return func(j *viz.JobTrace) { j.Between(from, to+1) }, nil
}

// Predict returns the times of a job's calls on the machine of a file, and tables of them;
// nothing without a file.
func Predict(j *viz.JobTrace, file string, reg submodules.Registry) (*viz.Prediction, []byte, error) {
	if file == "" {
		return nil, nil, nil
	}
	m, err := kit.ReadMachine("machine", file)
	if err != nil {
		return nil, nil, err
	}
	p := viz.Predict(j, m, reg)
	return p, viz.PredictionText(j, p, kit.MachineText(file, m)), nil
}
