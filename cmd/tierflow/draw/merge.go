package draw

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/viz"
)

// ReadTraces reads what the ranks of a job have kept in a folder and makes one trace of it.
func ReadTraces(dir string) (*viz.JobTrace, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []*trace.File
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".trace" {
			continue
		}
		name := filepath.Join(dir, entry.Name())
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := trace.ReadFile(name, data)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no file r0.trace or of another rank: ranks write them when they close the communicator that Join has returned", dir)
	}
	return viz.MergeTraces(files)
}

// WriteTrace writes a job's trace for ui.perfetto.dev to a file, - for standard output;
// compressed if its name ends in .gz.
func WriteTrace(stdout io.Writer, name string, j *viz.JobTrace) error {
	text := viz.JobPerfetto(j)
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
	text := r.format == "text"
	switch {
	case r.format != "perfetto" && !text:
		return kit.Usagef("--format %q: known are perfetto and text", r.format)
	case !text && r.out == "":
		return kit.Usagef("no file to write the trace to: give -o FILE, or -o - for standard output")
	}
	j, err := ReadTraces(r.merge)
	if err != nil {
		return err
	}
	if text {
		return kit.WriteOutput(c.OutOrStdout(), r.out, viz.JobText(j))
	}
	if err := WriteTrace(c.OutOrStdout(), r.out, j); err != nil {
		return err
	}
	_, err = c.ErrOrStderr().Write(viz.JobText(j))
	return err
}
