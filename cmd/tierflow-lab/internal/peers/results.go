package peers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/disturb"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/tasks"
)

// peerRow is a job's result for one cell: the columns of bench coll and of drivers.
type peerRow struct {
	Collective string  `json:"collective"`
	Bytes      int64   `json:"bytes"`
	Iters      int     `json:"iters"`
	Min        float64 `json:"min_us"`
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	Mean       float64 `json:"mean_us"`
	Wrong      int64   `json:"wrong"` // elements
	Plan       string  `json:"plan"`  // tierflow's
}

// parsePeerRows reads the rows of a job: one by one from a driver, in one object from
// bench coll. Launchers may print text before and after. With an error come the rows
// before it.
func parsePeerRows(text []byte) ([]peerRow, error) {
	at := bytes.IndexByte(text, '{')
	if at < 0 {
		return nil, fmt.Errorf("no results in %.80q", text)
	}
	var rows []peerRow
	for d := json.NewDecoder(bytes.NewReader(text[at:])); ; {
		var next struct {
			peerRow
			Results []peerRow `json:"results"`
		}
		// After the first row, text other than JSON is a launcher's last words.
		if err := d.Decode(&next); err != nil {
			if len(rows) == 0 {
				return nil, fmt.Errorf("results: %w", err)
			}
			return rows, nil
		}
		if next.Collective != "" {
			next.Results = append(next.Results, next.peerRow)
		}
		for _, row := range next.Results {
			if row.P50 <= 0 || row.Bytes < 0 {
				return rows, fmt.Errorf("results: %+v is no measurement", row)
			}
			if row.Wrong > 0 {
				return rows, fmt.Errorf("%s of %d bytes: %d elements are wrong", row.Collective, row.Bytes, row.Wrong)
			}
			rows = append(rows, row)
		}
	}
}

// peerResult is a cell of one setting over all rounds.
type peerResult struct {
	Library    string  `json:"library"`
	Variant    string  `json:"variant"`
	Collective string  `json:"collective"`
	Bytes      int64   `json:"bytes"`
	P50        float64 `json:"p50_us"` // median over rounds
	Least      float64 `json:"least_p50_us"`
	Largest    float64 `json:"largest_p50_us"`
	P99        float64 `json:"p99_us,omitempty"` // median over rounds; 0: not recorded
	Rounds     int     `json:"rounds"`
	// The median of the rounds' mean times, if noise is compared, and how many times
	// the undisturbed one of the same round it is.
	Mean          float64 `json:"mean_us,omitempty"`
	Slowdown      float64 `json:"slowdown,omitempty"`
	LeastSlowdown float64 `json:"least_slowdown,omitempty"`
	MostSlowdown  float64 `json:"most_slowdown,omitempty"`
	// Ratios of p50 to tierflow's in the same round, tuned if it is: their median, least
	// and largest. 0: tierflow has no such cell.
	Ratio        float64   `json:"ratio,omitempty"`
	LeastRatio   float64   `json:"least_ratio,omitempty"`
	LargestRatio float64   `json:"largest_ratio,omitempty"`
	Plan         string    `json:"plan,omitempty"` // tierflow's
	Command      string    `json:"command"`        // DIR is a temporary folder
	rounds       []float64 // p50, in order: after a failure there are no more
	tails        []float64 // p99
	means        []float64
}

// peerTable collects rows.
type peerTable struct {
	Command    string             `json:"command"`
	Date       string             `json:"date"`
	CPUs       int                `json:"cpus"`
	Processor  string             `json:"processor"`
	Kernel     string             `json:"kernel"`
	Versions   map[string]string  `json:"versions"` // of libraries
	Topology   string             `json:"topology"`
	Rate       string             `json:"rate"`
	Congestion string             `json:"congestion_control"`
	Single     bool               `json:"single,omitempty"` // a sample is one call; else calls back to back
	Noise      *disturb.Noise     `json:"noise,omitempty"`  // of the disturbed settings; missing: there are none
	Bind       string             `json:"bind,omitempty"`   // of a rank; empty: none
	Wire       map[string]float64 `json:"wire_us"`          // by bytes
	Tuning     *peerTuning        `json:"tuning,omitempty"` // missing: tierflow is not tuned
	Results    []*peerResult      `json:"results"`
	Missing    []missingPeer      `json:"missing"`
	Failures   []string           `json:"failures"`
}

// missingPeer is a library without a driver.
type missingPeer struct {
	Library  string `json:"library"`
	Packages string `json:"packages"` // Debian's
	Why      string `json:"why"`
}

// String returns the note about the library.
func (m missingPeer) String() string {
	return fmt.Sprintf("without %s, which Debian's packages %s would bring: %s", m.Library, m.Packages, m.Why)
}

// wireOp stands for a collective in the rows of a plain stream.
const wireOp = "wire"

// addRows adds the rows of one setting's turn.
func (t *peerTable) addRows(s setting, command string, rows []peerRow) {
	for _, row := range rows {
		r := t.find(s.library, s.variant, cell{row.Collective, row.Bytes})
		if r == nil {
			r = &peerResult{Library: s.library, Variant: s.variant, Collective: row.Collective, Bytes: row.Bytes, Plan: row.Plan, Command: command}
			t.Results = append(t.Results, r)
		}
		r.rounds, r.tails, r.means = append(r.rounds, row.P50), append(r.tails, row.P99), append(r.means, row.Mean)
	}
}

// find returns the result of a setting for a cell; nil: there is none. The wire is one for all settings.
func (t *peerTable) find(library, variant string, at cell) *peerResult {
	for _, r := range t.Results {
		if r.cell() == at && (r.Library == library && r.Variant == variant || at.op == wireOp) {
			return r
		}
	}
	return nil
}

// addFailure notes the failure of a job.
func (t *peerTable) addFailure(notes io.Writer, s setting, err error) {
	text := fmt.Sprintf("%v failed: %v", s, err)
	fmt.Fprintln(notes, "#", text)
	t.Failures = append(t.Failures, text)
}

// finish computes medians and ratios from the rounds.
func (t *peerTable) finish() {
	t.Wire = map[string]float64{}
	for _, r := range t.Results {
		r.Rounds = len(r.rounds)
		r.Least, r.P50, r.Largest = spread(r.rounds)
		_, r.P99, _ = spread(r.tails)
		if r.Collective == wireOp {
			t.Wire[strconv.FormatInt(r.Bytes, 10)] = r.P50
		}
	}
	ours := t.ourResults()
	for _, r := range t.Results {
		if reference := ours[r.cell()]; reference != nil {
			r.LeastRatio, r.Ratio, r.LargestRatio = spread(labkit.Ratios(r.rounds, reference.rounds))
		}
	}
	t.compareNoise()
}

// cell is a collective with a size. Results are compared by it.
type cell struct {
	op    string
	bytes int64
}

func (r *peerResult) cell() cell { return cell{r.Collective, r.Bytes} }

// ourResults returns tierflow's results, by cell, for others to be compared with:
// those of tuned plans, or else of the built-in rule.
func (t *peerTable) ourResults() map[cell]*peerResult {
	all := map[cell]*peerResult{}
	for _, r := range t.Results {
		if r.Library != ourselves || r.Collective == wireOp {
			continue
		}
		if r.Variant == tuned || r.Variant == asItIs && all[r.cell()] == nil {
			all[r.cell()] = r
		}
	}
	return all
}

// spread returns the least, the median and the largest of some values; 0 without any.
func spread(values []float64) (least, median, largest float64) {
	if len(values) == 0 {
		return 0, 0, 0
	}
	return kit.Round(slices.Min(values), 1e3), kit.Round(costs.Median(values), 1e3), kit.Round(slices.Max(values), 1e3)
}

// print writes the table cell by cell, or as JSON. A table without a row is an error.
func (t *peerTable) print(w io.Writer, order cells, asJSON bool) error {
	t.finish()
	t.sort(order)
	if asJSON {
		wire := func(r *peerResult) bool { return r.Collective == wireOp }
		t.Results = slices.DeleteFunc(t.Results, wire)
	}
	err := labkit.Print(w, asJSON, t, labkit.Left, t.printText)
	if len(t.Results) == 0 {
		err = errors.Join(err, errors.New("nothing was measured"))
	}
	return err
}

// sort puts the stream first and each collective's sizes together. Settings stay in
// the order of their turns.
func (t *peerTable) sort(order cells) {
	place := func(r *peerResult) int {
		return slices.Index(order.ops, r.Collective)*(len(order.bytes)+1) + slices.Index(order.bytes, r.Bytes)
	}
	slices.SortStableFunc(t.Results, func(a, b *peerResult) int { return place(a) - place(b) })
}

// printText writes a line for each result, slowdowns by noise, and commands.
func (t *peerTable) printText(w io.Writer) {
	if t.Tuning != nil {
		fmt.Fprintln(w, "# x tierflow: times what tierflow tuned takes in the same round; where that has no row, its built-in rule")
	}
	fmt.Fprintln(w, "collective\tbytes\tlibrary\tsetting\tp50 µs\tleast–largest\tp99 µs\tx tierflow")
	for _, r := range t.Results {
		library, ratio, tail := r.Library, "-", "-"
		if r.P99 > 0 {
			tail = figures(r.P99)
		}
		variant := r.Variant
		if r.Collective == wireOp {
			library, variant = "-", "one TCP stream"
		} else if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", r.Ratio)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s–%s\t%s\t%s\n",
			r.Collective, tasks.FormatBytes(r.Bytes), library, variant, figures(r.P50), figures(r.Least), figures(r.Largest), tail, ratio)
	}
	t.printNoise(w)
	if t.Tuning != nil {
		fmt.Fprintf(w, "# %v: %s\n", tuningItself, t.Tuning.Command)
	}
	var printed []string
	for _, r := range t.Results {
		if !slices.Contains(printed, r.Command) {
			printed = append(printed, r.Command)
			fmt.Fprintf(w, "# %s %s: %s\n", r.Library, r.Variant, r.Command)
		}
	}
}

// figures returns a number with about three figures.
func figures(v float64) string {
	decimals := 2
	if v >= 10 {
		decimals = 1
	}
	if v >= 100 {
		decimals = 0
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
