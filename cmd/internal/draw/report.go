package draw

import (
	"io"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/viz"
	"github.com/tierflow/tierflow/viz/report"
)

// WriteReport writes a job's trace and its findings as a page of HTML to a file, - for standard
// output.
func WriteReport(stdout io.Writer, name string, j *viz.JobTrace, found []verdict.Finding) error {
	page, err := report.HTML(j, found, "tierflow "+kit.Version())
	if err != nil {
		return err
	}
	return kit.WriteOutput(stdout, name, page)
}
