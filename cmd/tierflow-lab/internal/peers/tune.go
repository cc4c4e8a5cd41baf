package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/tasks"
)

// peerTuning says how tierflow was tuned before it was measured.
type peerTuning struct {
	Command      string  `json:"command"` // DIR is a temporary folder
	Seconds      float64 `json:"seconds"` // with starting the job
	Measurements int     `json:"measurements"`
	Planned      int     `json:"planned"` // more if the time was too short
}

// tuningItself is named when tuning fails, as settings are.
var tuningItself = setting{library: ourselves, variant: "tuning"}

// tuneCommand returns the command that tunes tierflow for some cells; each is the time
// for a setting in the sweep. Tuning is to take about as long as the sweep. So it
// leaves out the shape of the paper's schedule in lockstep, and segments and windows
// without large gains. A measurement takes a tenth of a setting's time:
// there are ten times as many.
func (s site) tuneCommand(c cells, each time.Duration) []string {
	ops, bytes := c.arguments()
	var shapes []string
	for _, shape := range tasks.Shapes() {
		if shape != tasks.HanLockstep {
			shapes = append(shapes, shape.String())
		}
	}
	return append(s.tierflowRun(), s.tierflow, "tune", "-o", s.tableFile(), "--json", "--regime", s.tuneRegime(), "--ops", ops, "--bytes", bytes,
		"--time", max(each/10, time.Millisecond).String(), "--budget", tuneTime(c, each).String(),
		"--shapes", strings.Join(shapes, ","), "--segments", "15KiB,30KiB,128KiB,all", "--windows", "8", "--inner", "0")
}

// tuneRegime returns tune's word for how calls follow each other.
func (s site) tuneRegime() string {
	if s.single {
		return costs.Single.String()
	}
	return costs.BackToBack.String()
}

// tuneTime returns the budget of the search: that of some settings' jobs.
func tuneTime(c cells, each time.Duration) time.Duration {
	return (2 * jobTime(c, each)).Round(time.Second)
}

// tune writes the decision table for some cells.
func (p *place) tune(ctx context.Context, c cells, each time.Duration, notes io.Writer) (*peerTuning, error) {
	words := p.tuneCommand(c, each)
	fmt.Fprintln(notes, "# tuning tierflow")
	begin := time.Now()
	text, err := p.runOnFirst(ctx, tuneTime(c, each)+jobTime(c, each), words...)
	if err != nil {
		return nil, err
	}
	var s struct { // of tune's summary
		Method string `json:"method"`
		peerTuning
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&s); err != nil {
		return nil, fmt.Errorf("summary: %w in %.80q", err, text)
	}
	t := &s.peerTuning
	t.Command, t.Seconds = p.readableText(words), kit.Round(time.Since(begin).Seconds(), 1e3)
	fmt.Fprintf(notes, "# tuned by %s: %d of %d measurements in %.1f s\n", s.Method, t.Measurements, t.Planned, t.Seconds)
	return t, nil
}

// notePlans prints the plans chosen by tuning.
func (t *peerTable) notePlans(notes io.Writer) {
	for _, r := range t.Results {
		if r.Variant == tuned && r.Plan != "" {
			cell := r.Collective
			if r.Bytes > 0 {
				cell += " " + tasks.FormatBytes(r.Bytes)
			}
			fmt.Fprintf(notes, "# tuned: %s %s\n", cell, r.Plan)
		}
	}
}
