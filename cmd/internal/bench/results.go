package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/gonum/stat"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Result is one row: an operation, a size, a plan. Times are those of the slowest
// rank. Bandwidths are 1e9 bytes per second at the median time.
type Result struct {
	Collective string      `json:"collective"`
	Shape      string      `json:"shape"`
	Plan       string      `json:"plan"`
	Bytes      int64       `json:"bytes"`
	Ranks      int         `json:"ranks"`
	Nodes      int         `json:"nodes"`
	Iters      int         `json:"iters"` // samples
	Min        float64     `json:"min_us"`
	P50        float64     `json:"p50_us"`
	P99        float64     `json:"p99_us"`
	Mean       float64     `json:"mean_us"`
	Half       float64     `json:"half_us"`              // half the width of the mean's 95% confidence interval; 0 with one sample
	Tie        bool        `json:"tie,omitempty"`        // this interval and that of the fastest plan overlap
	Samples    []float64   `json:"samples_us,omitempty"` // in the order of their measurement, those of each root together
	AlgBW      float64     `json:"algbw_gbytes_per_s"`
	BusBW      float64     `json:"busbw_gbytes_per_s"`
	OldAlgBW   float64     `json:"algbw_gbps"`               // deprecated name of AlgBW, as these are no bits: the next version goes without
	OldBusBW   float64     `json:"busbw_gbps"`               // the same of BusBW
	Wrong      int64       `json:"wrong"`                    // elements
	ToWire     float64     `json:"ratio_to_wire,omitempty"`  // of p50, to a one-way stream's of as many bytes
	Counts     []int64     `json:"counts,omitempty"`         // of different blocks, elements; Bytes is the largest's
	Roots      *rootSpread `json:"roots,omitempty"`          // of --root all; the other numbers are those of all roots' samples
	Single     bool        `json:"single,omitempty"`         // a sample is one call; else calls back to back
	Skew       float64     `json:"skew_us,omitempty"`        // lateness of the last rank; times include it
	TLS        string      `json:"tls,omitempty"`            // of connections between nodes, as it was given; empty: plain, or as the job has it
	ToPlain    float64     `json:"ratio_to_plain,omitempty"` // of p50, to the one without TLS
	Simulated  string      `json:"simulated,omitempty"`      // the machine; empty: the times were measured
	Asked      string      `json:"asked,omitempty"`          // the plan as it was given; empty: what is chosen, anew for each size
}

// rootSpread is how much the choice of the root matters.
type rootSpread struct {
	Min    float64   `json:"min_p50_us"`
	Median float64   `json:"median_p50_us"`
	Max    float64   `json:"max_p50_us"`
	Ratio  float64   `json:"max_to_min"`
	P50    []float64 `json:"p50_us"` // by root, as the next ones
	Lows   []float64 `json:"lows_us"`
	P99    []float64 `json:"p99_us"`
	Every  int       `json:"every"` // from one root to the next
}

// notesOut returns the writer for notes: that of the results, unless a program reads these.
func notesOut(asData bool, stdout, stderr io.Writer) io.Writer {
	if asData {
		return stderr
	}
	return stdout
}

// newSpread sums up the median times of all roots, or of each every-th. Of each root there are its least and
// its 99th percentile, too.
func newSpread(every int, p50, lows, p99 []float64) *rootSpread {
	sorted := slices.Sorted(slices.Values(p50))
	s := &rootSpread{Min: sorted[0], Median: stat.Quantile(0.5, stat.Empirical, sorted, nil), Max: sorted[len(sorted)-1], P50: p50, Lows: lows, P99: p99, Every: every}
	if s.Min > 0 {
		s.Ratio = kit.Round(s.Max/s.Min, 1e3)
	}
	return s
}

// newRootsResult sums up the same operation measured from each root.
func newRootsResult(byRoot []*subject, every int) Result {
	all := *byRoot[0]
	all.times, all.raw, all.wrong = nil, nil, make([]int64, 1)
	var p50, lows, p99 []float64
	for _, s := range byRoot {
		one := newResult(s)
		p50, lows, p99 = append(p50, one.P50), append(lows, one.Min), append(p99, one.P99)
		all.times, all.raw = append(all.times, s.times...), append(all.raw, s.raw...)
		all.wrong[0] += s.wrong[0]
	}
	slices.Sort(all.times)
	r := newResult(&all)
	if len(byRoot) > 1 {
		r.Roots = newSpread(every, p50, lows, p99)
	}
	return r
}

// newResult sums up a measured subject.
func newResult(s *subject) Result {
	if s.wire != nil {
		r := sumUp(s.comm.Topology(), s.request, tasks.Plan{}, s.times)
		r.Samples = s.raw
		r.Collective, r.Shape, r.Plan, r.Counts, r.Wrong = "wire", "tcp", "", nil, s.wrong[0]
		return r
	}
	r := sumUp(s.comm.Topology(), s.request, s.calls[0].Plan(), s.times)
	r.Wrong, r.Single, r.Skew, r.Samples = s.wrong[0], s.single, float64(s.skew.Nanoseconds())/1e3, s.raw
	return r
}

// sumUp sums up times of a request with a plan: µs, the shortest first.
func sumUp(t *levels.Topology, of tasks.Request, p tasks.Plan, times []float64) Result {
	quantile := func(p float64) float64 { return kit.Round(stat.Quantile(p, stat.Empirical, times, nil), 1e3) }
	s := stats.Summarize(times)
	r := Result{
		Collective: of.Coll.String(), Shape: p.Shape.String(), Plan: p.String(),
		Bytes: of.Bytes(), Ranks: t.Size(), Nodes: t.Nodes(), Iters: len(times),
		Min: kit.Round(times[0], 1e3), P50: quantile(0.5), P99: quantile(0.99), Mean: kit.Round(s.Mean, 1e3), Half: kit.Round(s.Half, 1e3),
	}
	for i := range of.Counts.Len() {
		r.Counts = append(r.Counts, of.Counts.At(i))
	}
	if r.P50 > 0 {
		r.AlgBW = kit.RoundRate(float64(of.AllBytes(r.Ranks)) / 1e3 / r.P50)
		r.BusBW = kit.RoundRate(r.AlgBW * of.Coll.BusFactor(r.Ranks))
		r.OldAlgBW, r.OldBusBW = r.AlgBW, r.BusBW
	}
	return r
}

// Results prints rows as they come, or all at once as JSON.
type Results struct {
	Out    io.Writer
	JSON   bool
	named  bool // rows end with the plan as it was given
	wired  bool // rows have a ratio to the wire's
	sealed bool // rows say whether there was TLS, and have a ratio to plain
	roots  bool // rows have a spread over roots
	plain  bool // nothing was checked: simulations move no bytes
	origin provenance
	All    []Result
	widths []int // of columns, characters
}

var columns = []string{"collective", "shape", "bytes", "iters", "min µs", "p50 µs", "p99 µs", "±%", "algbw", "busbw", "wrong"}

// printHead prints the names of the columns.
func (r *Results) printHead() error {
	if r.JSON {
		return nil
	}
	cells := slices.Clone(columns)
	if r.wired {
		cells = append(cells, "x wire")
	}
	if r.sealed {
		cells = append(cells, "tls", "x plain")
	}
	if r.roots {
		cells = append(cells, "root min", "root p50", "root max", "max/min")
	}
	return r.printLine(cells, "plan")
}

// addRow keeps a row, and prints it unless the output is JSON.
func (r *Results) addRow(row Result) error {
	r.All = append(r.All, row)
	if r.JSON {
		return nil
	}
	rate := func(gbytes float64) string { return strings.Replace(kit.RateText(1e9*gbytes), " ", "", 1) } // one word
	us := func(v float64) string { return digits(v, 3, 5) }
	cells := []string{
		row.Collective, row.Shape, tasks.FormatBytes(row.Bytes), strconv.Itoa(row.Iters),
		us(row.Min), us(row.P50), us(row.P99), row.precision(), rate(row.AlgBW), rate(row.BusBW), strconv.FormatInt(row.Wrong, 10),
	}
	if r.plain {
		cells[len(cells)-1] = "-" // wrong
	}
	if r.wired {
		cells = append(cells, us(row.ToWire))
	}
	switch {
	case r.sealed && row.TLS != "":
		cells = append(cells, "yes", us(row.ToPlain))
	case r.sealed:
		cells = append(cells, "-", "-")
	}
	switch s := row.Roots; {
	case r.roots && s != nil:
		cells = append(cells, us(s.Min), us(s.Median), us(s.Max), us(s.Ratio))
	case r.roots:
		cells = append(cells, "-", "-", "-", "-")
	}
	return r.printLine(cells, row.Asked)
}

// digits writes a number with so many digits, not more than most of them behind the point.
func digits(v float64, most, all int) string {
	for limit := math.Pow10(all - most); most > 0 && v >= limit; limit *= 10 {
		most--
	}
	return strconv.FormatFloat(v, 'f', most, 64)
}

// precision returns half the width of the mean's confidence interval, in percent of the mean; - with one sample.
func (r *Result) precision() string {
	if r.Iters < 2 || r.Mean <= 0 {
		return "-"
	}
	return digits(100*r.Half/r.Mean, 1, 2)
}

// markTies marks the rows of one request whose confidence intervals overlap with that of the fastest one, and this. A
// row of one sample has no interval.
func markTies(rows []Result) {
	var fastest *Result
	for i := range rows {
		if r := &rows[i]; r.Iters > 1 && (fastest == nil || r.Mean < fastest.Mean) {
			fastest = r
		}
	}
	for i := range rows {
		if r := &rows[i]; r != fastest && r.Iters > 1 && r.Mean-r.Half <= fastest.Mean+fastest.Half {
			r.Tie, fastest.Tie = true, true
		}
	}
}

// Name tells the row's plan from others: the plan as given, a lone shape without its key. Without a plan it is chosen
// anew for each size.
func (r *Result) Name() string {
	name := "chosen"
	if r.Asked != "" {
		name = strings.ReplaceAll(strings.TrimPrefix(r.Asked, "shape="), ",", " ")
	}
	if r.TLS != "" {
		name += ", TLS"
	}
	return name
}

// tieText names the rows of a tie, in a line of notes; empty: there is none.
func tieText(rows []Result) string {
	var names []string
	for i := range rows {
		if rows[i].Tie {
			names = append(names, rows[i].Name())
		}
	}
	if names == nil {
		return ""
	}
	return "# tie: " + strings.Join(names, ", ") + "\n"
}

// usualWidths are wide enough for most rows, and so narrow that a row fits into a line of 80.
var usualWidths = []int{10, 7, 6, 5, 6, 6, 6, 3, 8, 8, 5}

// printLine prints one row at once. Its columns line up with those before, though rows come seconds
// apart; one with a wider cell is wider from then on.
func (r *Results) printLine(cells []string, plan string) error {
	if r.widths == nil {
		r.widths = slices.Clone(usualWidths)
	}
	var b strings.Builder
	for i, cell := range cells {
		n := utf8.RuneCountInString(cell)
		if i == len(r.widths) {
			r.widths = append(r.widths, 7)
		}
		r.widths[i] = max(r.widths[i], n)
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strings.Repeat(" ", r.widths[i]-n) + cell)
	}
	if r.named { // last and not aligned: its width is anybody's guess
		b.WriteString("  " + plan)
	}
	_, err := fmt.Fprintln(r.Out, b.String())
	return err
}

// printEnd prints the JSON. It returns an error if a result was wrong.
func (r *Results) printEnd() error {
	if r.JSON {
		if err := kit.WriteJSON(r.Out, document{r.origin, r.All}); err != nil {
			return err
		}
	}
	wrong, rows := int64(0), 0
	for _, row := range r.All {
		wrong += row.Wrong
		if row.Wrong > 0 {
			rows++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d elements are wrong, in %d of %d rows", wrong, rows, len(r.All))
	}
	return nil
}
