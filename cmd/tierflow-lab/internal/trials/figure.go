package trials

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/bench"
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/charts"
	"github.com/tierflow/tierflow/levels/files"
)

func figureCommand() *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use:   "figure FILE",
		Short: "Draw what tierflow bench has measured",
		Long: `Draws what tierflow bench coll or bench task printed with --json, as SVG.

Of bench coll it draws p50 by size, a curve for each plan and one for what is chosen,
with whiskers from min to p99; with --root all from the fastest root to the slowest,
around the median of the roots (as in "MPI collectives in MPICH2"). Of one size with
--root all it draws p50 of each root, with whiskers from min to p99.

Of bench task it draws the times of a task that occurs often, one panel for each plan
(HAN, figure 3).

Programs may write curves: {"title": "…", "x": "step", "y": "ms", "series":
[{"name": "…", "values": [3, 2.5]}]}.`,
		Example: `  tierflow bench coll bcast,reduce --topo 64x12 --root all/13 --bytes 64KiB --simulate assumed --json > roots.json
  tierflow-lab figure roots.json -o roots.svg
  tierflow bench task sbib --plan i=adapt/chain --json | tierflow-lab figure /dev/stdin -o sbib.svg`,
		Args: kit.Operand("a file with what tierflow bench printed"),
		RunE: func(c *cobra.Command, args []string) error {
			data, err := files.Read(args[0], maxFigure)
			if err != nil {
				return err
			}
			svg, err := drawFile(data)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return kit.WriteOutput(c.OutOrStdout(), output, svg)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "file to write (default standard output)")
	return c
}

// maxFigure bounds a file to draw, bytes. Samples of hours fit.
const maxFigure = 1 << 30

// drawFile draws the JSON of a command.
func drawFile(data []byte) ([]byte, error) {
	var file struct {
		Provenance struct{ Topology string }
		Results    json.RawMessage
		charts.Plot
	}
	var kinds []struct{ Task, Collective string }
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	if file.Results == nil {
		file.Plot.Style = charts.Lines
		return file.Plot.SVG()
	}
	if err := json.Unmarshal(file.Results, &kinds); err != nil {
		return nil, err
	}
	var figure charts.Panels
	switch {
	case len(kinds) > 0 && kinds[0].Task != "":
		var results []bench.TaskResult
		if err := json.Unmarshal(file.Results, &results); err != nil {
			return nil, err
		}
		var err error
		if figure, err = drawSettling(file.Provenance.Topology, results); err != nil {
			return nil, err
		}
	case len(kinds) > 0 && kinds[0].Collective != "":
		var rows []bench.Result
		if err := json.Unmarshal(file.Results, &rows); err != nil {
			return nil, err
		}
		figure = drawRows(file.Provenance.Topology, rows)
	}
	return figure.SVG()
}
