package labkit

import (
	"io"
	"text/tabwriter"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/charts"
)

// The sides on which columns are aligned.
const (
	Left  uint = 0
	Right      = tabwriter.AlignRight
)

// Print prints results as JSON, or as write has them: cells that end in tabs are columns, up
// to the next line without a tab.
func Print(out io.Writer, asJSON bool, results any, align uint, write func(w io.Writer)) error {
	if asJSON {
		return kit.WriteJSON(out, results)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', align)
	write(w)
	return w.Flush()
}

// Draw writes a figure to the file of --svg, if there is a name. It comes after [Print]: a file
// that can't be written loses nothing else.
func Draw(out io.Writer, name string, figure charts.Panels) error {
	if name == "" {
		return nil
	}
	drawing, err := figure.SVG()
	if err != nil {
		return err
	}
	return kit.WriteOutput(out, name, drawing)
}
