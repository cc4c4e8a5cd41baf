package peers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/tasks"
)

// board is the command board.
type board struct {
	benchPeers
	topos, rates, regimes string
	record, svg           string
	lasts                 time.Duration // 0: until all is measured
}

// Regimes of a board.
const (
	singleCalls = "single"
	backToBack  = "back-to-back"
)

// newBoard has the defaults.
func newBoard() *board {
	b := &board{benchPeers: benchPeers{site: site{bind: bindNone, measured: true}}}
	b.topo, b.time, b.rate, b.congestion, b.rounds = "1x2", 50*time.Millisecond, "none", "reno", 3
	b.ops = strings.Join(kit.Names(tasks.Requestable()), ",")
	b.bytes = "4,16,64,256,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB"
	b.topos, b.rates, b.regimes = "1x2,1x4,2x1,4x1,2x2,4x2,8x1,8x2,16x1", "none,1gbit,100mbit", singleCalls+","+backToBack
	b.record = "board.json"
	return b
}

// BoardCommand returns the command board.
func BoardCommand() *cobra.Command {
	b := newBoard()
	c := &cobra.Command{
		Use: "board", Short: "Measure all collectives and sizes beside Open MPI and MPICH", Args: kit.NoOperands,
		Long: `Measures every collective in every size on every layout and link, by default settings,
in turns with Open MPI's default and HAN and with MPICH, as tierflow-lab peers measures.
It tells which cells are behind.

A round measures each cell once, by launches of their own. A cell's ratio is tierflow's
p50 over Open MPI's default of the same round: the median of the rounds, with the least
and the largest. It is behind if even the least is above 1.05, good if even the largest
is not, and else open. "off" is tierflow's default over what it does without a measured
machine, "best" over the better of Open MPI's default and MPICH's.

Samples go to the file of --record as they come: the command goes on where it was
interrupted, or --for has ended it, and prints what there is. The first round of single
calls comes first, so that a part of the time gives a picture of all. Nothing else
should run on the machine.`,
		Example: `  tierflow-lab board --record board.json --for 1h --svg board.svg
  tierflow-lab board --record board.json --topos 4x1,4x2 --rates none --ops scatter,alltoall --rounds 5`,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			return b.measure(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		}),
	}
	b.addFlags(c, "program tierflow to measure", []string{"openmpi", "mpich"})
	f := c.Flags()
	for _, name := range []string{"topo", "rate"} {
		_ = f.MarkHidden(name) // --topos and --rates are in their places
	}
	f.StringVar(&b.topos, "topos", b.topos, "layouts: nodes and ranks on each")
	f.StringVar(&b.rates, "rates", b.rates, "rates of links between nodes")
	f.StringVar(&b.regimes, "regimes", b.regimes, "samples of one call, or of calls back to back")
	f.StringVar(&b.record, "record", b.record, "file for samples; what is there already is not measured anew")
	f.StringVar(&b.svg, "svg", "", "file for a picture: cells as colours")
	f.DurationVar(&b.lasts, "for", 0, "end after so long; 0: when all is measured")
	return c
}

// sample is a setting's p50 in one round.
type sample struct {
	boardCell
	Setting string  `json:"setting"`
	Round   int     `json:"round"`
	P50     float64 `json:"p50_us"`
	Plan    string  `json:"plan,omitempty"`
}

// boardCell is what is compared.
type boardCell struct {
	Topology   string `json:"topology"`
	Rate       string `json:"rate"`
	Regime     string `json:"regime"`
	Collective string `json:"collective"`
	Bytes      int64  `json:"bytes"`
}

// boardFile is the samples, and the facts on which they depend.
type boardFile struct {
	Facts   *peerTable `json:"facts"`
	Samples []sample   `json:"samples"`
}

// part is some cells that one place measures at once: those of a collective.
type part struct {
	boardCell
	round int
}

// parts lists what there is to measure, in this order.
func (b *board) parts() (all []part, err error) {
	topos, rates, regimes := strings.Split(b.topos, ","), strings.Split(b.rates, ","), strings.Split(b.regimes, ",")
	for _, r := range regimes {
		if r != singleCalls && r != backToBack {
			return nil, kit.Usagef("--regimes: %q; allowed are %s and %s", r, singleCalls, backToBack)
		}
	}
	for round := range b.rounds {
		for _, regime := range regimes {
			for _, topo := range topos {
				for i, rate := range rates {
					b.topo, b.rate = topo, rate
					if err := b.read(); err != nil {
						return nil, err
					}
					if b.nodes == 1 {
						if rate = "none"; i > 0 {
							continue
						}
					}
					for _, op := range b.cells.ops {
						all = append(all, part{boardCell{topo, rate, regime, op, 0}, round})
					}
				}
			}
		}
	}
	return all, nil
}

// measure measures what is missing, and prints all.
func (b *board) measure(ctx context.Context, stdout, notes io.Writer) error {
	if b.lasts < 0 {
		return kit.Usagef("--for %v: allowed are times from 0 on", b.lasts)
	}
	todo, err := b.parts()
	if err != nil {
		return err
	}
	kept, err := b.load()
	if err != nil {
		return err
	}
	has := map[part]bool{}
	for _, s := range kept.Samples {
		c := s.boardCell
		c.Bytes = 0
		has[part{c, s.Round}] = true
	}
	todo = slices.DeleteFunc(todo, func(p part) bool { return has[p] })
	end := time.Now().Add(b.lasts)
	var failed error
	for len(todo) > 0 && failed == nil && (b.lasts == 0 || time.Now().Before(end)) {
		n := slices.IndexFunc(todo, func(p part) bool {
			return p.Topology != todo[0].Topology || p.Rate != todo[0].Rate || p.Regime != todo[0].Regime
		})
		if n < 0 {
			n = len(todo)
		}
		failed = b.measureAt(ctx, todo[:n], end, kept, notes)
		todo = todo[n:]
	}
	if failed != nil && ctx.Err() == nil {
		return failed
	}
	cells := kept.cells()
	if b.json {
		err = kit.WriteJSON(stdout, cells)
	} else {
		err = labkit.Print(stdout, false, nil, labkit.Left, func(w io.Writer) { printBoard(w, cells) })
	}
	if err == nil && b.svg != "" {
		err = kit.WriteOutput(notes, b.svg, boardSVG(cells))
	}
	return cmp.Or(failed, err)
}

// measureAt measures parts of one layout, link and regime.
func (b *board) measureAt(ctx context.Context, parts []part, end time.Time, kept *boardFile, notes io.Writer) (err error) {
	b.topo, b.rate = parts[0].Topology, parts[0].Rate
	if err := b.read(); err != nil {
		return err
	}
	p, err := b.enter(ctx, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.leave()) }()
	p.single = parts[0].Regime == singleCalls
	facts := b.newTable(p)
	found, err := p.findPeers(ctx, b.others, facts, notes)
	if err != nil {
		return err
	}
	kept.Facts = facts
	for _, one := range parts {
		if b.lasts > 0 && time.Now().After(end) {
			return nil
		}
		fmt.Fprintf(notes, "# round %d: %s %s, %s, %s\n", one.round+1, one.Topology, one.Rate, one.Regime, one.Collective)
		c := cells{[]string{one.Collective}, b.cells.bytes}
		if one.Collective == tasks.Barrier.String() {
			c.bytes = c.bytes[:1]
		}
		measured := 0
		for _, s := range boardSettings(p, found) {
			rows, err := p.runSetting(ctx, s, c, b.time)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				facts.addFailure(notes, s, err)
			}
			for _, row := range rows {
				if row.Collective == one.Collective {
					at := one.boardCell
					at.Bytes = row.Bytes
					kept.Samples = append(kept.Samples, sample{at, s.String(), one.round, row.P50, row.Plan})
					measured++
				}
			}
		}
		if measured == 0 {
			return fmt.Errorf("%s on %s: nothing could be measured", one.Collective, one.Topology)
		}
		if err := kept.save(b.record); err != nil {
			return err
		}
	}
	return nil
}

// boardSettings are tierflow as it is, on several nodes also without a measured machine, and the others' defaults.
func boardSettings(p *place, found []peer) []setting {
	all := []setting{byRule}
	if p.nodes > 1 {
		all = append(all, byMachine)
	}
	for _, l := range found {
		all = append(all, asItIsOf(l.name))
		if l.name == openMPI && p.isHierarchical() {
			all = append(all, openMPIHAN(true))
		}
	}
	return all
}

// load reads the samples; there may be none yet.
func (b *board) load() (*boardFile, error) {
	kept := &boardFile{}
	data, err := files.Read(b.record, 256<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}
	if err == nil {
		err = json.Unmarshal(data, kept)
	}
	if err != nil {
		return nil, kit.Usagef("--record: %w", err)
	}
	return kept, nil
}

func (f *boardFile) save(name string) error {
	data, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return files.Output(name, data, 0o644)
}

// compared is a cell with its ratios; 0: nothing to compare with.
type compared struct {
	boardCell
	Rounds  int     `json:"rounds"`
	P50     float64 `json:"p50_us"` // tierflow's, median
	Ratio   float64 `json:"ratio"`  // over Open MPI's default: median, least and largest
	Least   float64 `json:"least_ratio"`
	Largest float64 `json:"largest_ratio"`
	Best    float64 `json:"best_ratio"` // over the better of Open MPI's default and MPICH's, median
	HAN     float64 `json:"han_ratio,omitempty"`
	Off     float64 `json:"off_ratio,omitempty"` // default over the built-in rule, median
	Plan    string  `json:"plan,omitempty"`
}

// limit of a ratio that is not behind.
const behindFrom = 1.05

func (c *compared) isBehind() bool { return c.Least > behindFrom }
func (c *compared) isOpen() bool   { return c.Least <= behindFrom && c.Largest > behindFrom }

// cells compares the samples cell by cell, in the order in which they were measured.
func (f *boardFile) cells() (all []*compared) {
	type key struct {
		boardCell
		setting string
	}
	by, place := map[key]map[int]sample{}, map[boardCell]bool{}
	var order []boardCell
	for _, s := range f.Samples {
		k := key{s.boardCell, s.Setting}
		if by[k] == nil {
			by[k] = map[int]sample{}
		}
		by[k][s.Round] = s
		if !place[s.boardCell] {
			place[s.boardCell] = true
			order = append(order, s.boardCell)
		}
	}
	for _, at := range order {
		ours := by[key{at, byMachine.String()}]
		off := by[key{at, byRule.String()}]
		if ours == nil {
			ours = off // on one node nothing is measured
		}
		ompi, other := by[key{at, asItIsOf(openMPI).String()}], by[key{at, asItIsOf(mpich).String()}]
		han := by[key{at, openMPIHAN(true).String()}]
		c := &compared{boardCell: at, Rounds: len(ours)}
		var mine, ratios, best, offs, hans []float64
		for round, s := range ours {
			mine = append(mine, s.P50)
			c.Plan = s.Plan
			least := math.Inf(1)
			if o, ok := ompi[round]; ok {
				ratios = append(ratios, s.P50/o.P50)
				least = o.P50
			}
			if o, ok := other[round]; ok {
				least = min(least, o.P50)
			}
			if !math.IsInf(least, 1) {
				best = append(best, s.P50/least)
			}
			if o, ok := off[round]; ok && at.hasNodes() {
				offs = append(offs, s.P50/o.P50)
			}
			if o, ok := han[round]; ok {
				hans = append(hans, s.P50/o.P50)
			}
		}
		_, c.P50, _ = spread(mine)
		c.Least, c.Ratio, c.Largest = spread(ratios)
		_, c.Best, _ = spread(best)
		_, c.Off, _ = spread(offs)
		_, c.HAN, _ = spread(hans)
		all = append(all, c)
	}
	return all
}

func (c boardCell) hasNodes() bool { return !strings.HasPrefix(c.Topology, "1x") }

// printBoard writes a line for each layout, link and regime, and the cells that are behind.
func printBoard(w io.Writer, all []*compared) {
	fmt.Fprintf(w, "# %d cells; from 64 B on they count\n", len(all))
	fmt.Fprintln(w, "layout\trate\tregime\tcells\tmean / Open MPI\tmean / best\tabove 1.05\tabove 1.15\tbehind\topen\tdefault / off above 1.05")
	var groups []string
	by := map[string][]*compared{}
	for _, c := range all {
		if c.Bytes < 64 && c.Collective != tasks.Barrier.String() {
			continue
		}
		for _, g := range []string{c.Topology + "\t" + c.Rate + "\t" + c.Regime, "all\t\t"} {
			if by[g] == nil {
				groups = append(groups, g)
			}
			by[g] = append(by[g], c)
		}
	}
	slices.SortStableFunc(groups, func(a, b string) int {
		return cmp.Compare(strings.Count(a, "all"), strings.Count(b, "all"))
	})
	for _, g := range groups {
		var ratios, best []float64
		var over, far, behind, open, off int
		for _, c := range by[g] {
			if c.Ratio > 0 {
				ratios = append(ratios, c.Ratio)
			}
			if c.Best > 0 {
				best = append(best, c.Best)
			}
			for _, x := range []struct {
				is bool
				n  *int
			}{{c.Ratio > behindFrom, &over}, {c.Ratio > 1.15, &far}, {c.isBehind(), &behind}, {c.isOpen(), &open}, {c.Off > behindFrom, &off}} {
				if x.is {
					*x.n++
				}
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%d\t%d\t%d\t%d\t%d\n", g, len(by[g]), labkit.GeometricMean(ratios), labkit.GeometricMean(best), over, far, behind, open, off)
	}
	worst := slices.DeleteFunc(slices.Clone(all), func(c *compared) bool { return c.Ratio <= behindFrom && c.Off <= behindFrom })
	slices.SortStableFunc(worst, func(a, b *compared) int { return cmp.Compare(b.Ratio, a.Ratio) })
	fmt.Fprintln(w, "layout\trate\tregime\tcollective\tbytes\tp50 µs\t/ Open MPI\tleast–largest\t/ best\t/ HAN\t/ off\tplan")
	for _, c := range worst {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f–%.2f\t%.2f\t%s\t%s\t%s\n", c.Topology, c.Rate, c.Regime, c.Collective, tasks.FormatBytes(c.Bytes),
			figures(c.P50), c.Ratio, c.Least, c.Largest, c.Best, orDash(c.HAN), orDash(c.Off), c.Plan)
	}
}

func orDash(ratio float64) string {
	if ratio == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", ratio)
}

// boardSVG draws a row for each collective of a layout, link and regime, a column for each size, coloured by the ratio.
func boardSVG(all []*compared) []byte {
	const cellWidth, cellHeight, left, top = 34, 13, 210, 34
	var rows []string
	var sizes []int64
	for _, c := range all {
		if row := c.row(); !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
		if !slices.Contains(sizes, c.Bytes) {
			sizes = append(sizes, c.Bytes)
		}
	}
	slices.Sort(sizes)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="9">`+"\n", left+len(sizes)*cellWidth+10, top+len(rows)*cellHeight+10)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/><text x="4" y="12" font-size="11">tierflow's time over Open MPI's default: green is less, red more</text>` + "\n")
	for i, n := range sizes {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", left+i*cellWidth+cellWidth/2, top-4, tasks.FormatBytes(n))
	}
	for i, row := range rows {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-4, top+i*cellHeight+10, row)
	}
	for _, c := range all {
		x, y := left+slices.Index(sizes, c.Bytes)*cellWidth, top+slices.Index(rows, c.row())*cellHeight
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><text x="%d" y="%d" text-anchor="middle">%.2f</text>`+"\n",
			x, y, cellWidth-1, cellHeight-1, colorOf(c.Ratio), x+cellWidth/2, y+10, c.Ratio)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func (c *compared) row() string {
	return strings.Join([]string{c.Topology, c.Rate, c.Regime, c.Collective}, " ")
}

// colorOf goes from green, a third, over white, 1, to red, 3.
func colorOf(ratio float64) string {
	if ratio == 0 {
		return "#dddddd"
	}
	at := max(-1, min(1, math.Log(ratio)/math.Log(3)))
	fade := func(c float64) int { return int(255 - math.Abs(at)*(255-c)) }
	if at < 0 {
		return fmt.Sprintf("#%02x%02x%02x", fade(60), fade(170), fade(90))
	}
	return fmt.Sprintf("#%02x%02x%02x", fade(220), fade(60), fade(50))
}
