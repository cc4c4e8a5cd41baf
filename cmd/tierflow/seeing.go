package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/cmd/tierflow/draw"
	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/cmd/tierflow/launch"
	"github.com/tierflow/tierflow/viz"
)

// seeing is what run shows of a job when it is over.
type seeing struct {
	trace string // FILE, or FILE:every=N

	file string
	dir  string // of what ranks have kept; empty: nothing is to be shown
}

// usualEvery is of how many calls one is traced unless told.
const usualEvery = 16

// begin checks the flags and lets ranks keep what they do.
func (s *seeing) begin(o *launch.Options) (err error) {
	if s.trace == "" {
		return nil
	}
	file, number, given := strings.Cut(s.trace, ":every=")
	o.TraceEvery = usualEvery
	if given {
		if o.TraceEvery, err = strconv.Atoi(number); err != nil || o.TraceEvery < 1 || o.TraceEvery > 1<<20 {
			return kit.Usagef("--trace %s: allowed are a file, and a file with :every=1 to :every=%d", s.trace, 1<<20)
		}
	}
	if file == "" {
		return kit.Usagef("--trace %s: it names no file", s.trace)
	}
	s.file = file
	s.dir, err = os.MkdirTemp("", "tierflow-traces")
	o.TraceDir = s.dir
	return err
}

// end writes what was asked for, and a summary to stderr.
func (s *seeing) end(stdout, stderr io.Writer) error {
	if s.dir == "" {
		return nil
	}
	defer os.RemoveAll(s.dir)
	j, err := draw.ReadTraces(s.dir)
	if err != nil {
		return fmt.Errorf("--trace %s: no rank has closed the communicator that planner.Join returns, or none calls it", s.file)
	}
	_, err = stderr.Write(viz.JobText(j))
	return errors.Join(err, draw.WriteTrace(stdout, s.file, j))
}
