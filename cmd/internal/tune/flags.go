package tune

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
)

// AddFlags adds the flags of all tune commands, except those for sizes.
func (u *Tuning) AddFlags(c *cobra.Command) {
	u.AddJobFlags(c)
	f := c.Flags()
	f.StringVar(&u.ops, "ops", strings.Join(kit.Names(tasks.Requestable()), ","), "collectives")
	f.StringVar(&u.Type, "dtype", "f32", "element type")
	f.StringVar(&u.Op, "reduce-op", "sum", "operation of reductions")
	f.TextVar(&u.Regime, "regime", costs.Single, "how calls follow each other, a `word`: "+strings.Join(kit.Names(costs.Regimes()), " or "))
	f.DurationVar(&u.Time, "time", 50*time.Millisecond, "most time for one measurement, beyond five samples")
	f.StringVar(&u.shapes, "shapes", "", "shapes to search (default all)")
	f.StringVar(&u.submodules, "submodules", "", "submodules to search (default all)")
	f.StringVar(&u.segments, "segments", "", "segment sizes to search (default "+sizesText(tune.DefaultSegments)+")")
	f.StringVar(&u.inners, "inner", "", "inner segments to search, 0 for none (default "+sizesText(tune.DefaultInners)+")")
	f.IntSliceVar(&u.windows, "windows", tune.DefaultWindows, "windows to search")
	f.IntSliceVar(&u.numbers, "numbers", nil, "numbers of algorithms to search, 0 for the default one (default each algorithm's own, see tierflow info)")
	u.AddPlanFlag(c, kit.PlanText+"; what it says is not searched")
}

// AddSizeFlags adds the flags for a ladder of sizes or a list.
func (u *Tuning) AddSizeFlags(c *cobra.Command, least, most string) {
	f := c.Flags()
	f.StringVar(&u.min, "min", least, "smallest "+kit.BytesText)
	f.StringVar(&u.max, "max", most, "largest size")
	f.StringVar(&u.Bytes, "bytes", "", "exactly these sizes, in place of those from --min to --max: 4,64KiB or 4:4MiB:x4")
}

func sizesText(all []int64) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = tasks.FormatBytes(n)
	}
	return strings.Join(texts, ",")
}

// read checks the flags common to all ranks.
func (u *Tuning) read() error {
	colls, err := kit.ParseCollectives(u.ops)
	if err != nil {
		return err
	}
	sizes, err := u.ReadSizes()
	if err != nil {
		return err
	}
	if u.Time <= 0 || u.Budget < 0 {
		return kit.Usagef("--time %v, --budget %v: a time is above 0", u.Time, u.Budget)
	}
	u.Stop = stats.Stop{Budget: u.Time}
	if err := kit.CheckOutput("svg", u.SVG); err != nil {
		return err
	}
	if err := u.readSpace(); err != nil {
		return err
	}
	if u.breakEven && u.profile == "" {
		return kit.Usagef("--break-even compares with what a program calls: give --profile FILE")
	}
	if u.profile != "" {
		return u.readProfile()
	}
	t := u.Job.Topology()
	for _, other := range []string{"machines", "nodes", "ppn"} {
		if err := u.CheckExclusive("uneven", other); err != nil {
			return err
		}
	}
	if u.uneven != 0 && !u.IsGiven("ops") {
		colls = slices.DeleteFunc(colls, func(c tasks.Collective) bool { return !c.HasCounts() && !c.HasMatrix() })
	}
	for _, coll := range colls {
		for _, n := range sizes {
			r, err := u.ReadRequest(coll, n, t)
			if err == nil && u.uneven != 0 {
				if r, err = tasks.MakeUneven(r, u.uneven, t.Size()); err != nil {
					err = kit.Usagef("--uneven: %w", err)
				}
			}
			if err != nil {
				return err
			}
			if slices.Contains(u.Requests, r) { // barriers, without a size
				continue
			}
			switch {
			case u.fits(r, t.Size()):
				u.Requests = append(u.Requests, r)
			case u.isListed():
				return u.tooLarge(coll, n, t.Size())
			}
		}
	}
	return nil
}

// fits reports whether a request's buffers are small enough. Larger sizes of a ladder are
// left out.
func (u *Tuning) fits(r tasks.Request, ranks int) bool {
	if u.File == "" {
		return fitsMemory(r, ranks)
	}
	return u.isListed() || !r.Blocks() || r.Bytes()*int64(ranks) <= maxBlocks
}

// tooLarge complains of a size of --bytes that doesn't fit.
func (u *Tuning) tooLarge(coll tasks.Collective, n int64, ranks int) error {
	return kit.Usagef("--bytes %s: %v of %d ranks takes over %s together", tasks.FormatBytes(n), coll, ranks, tasks.FormatBytes(maxTuned))
}

// fitsMemory reports whether all ranks' blocks are small enough.
func fitsMemory(r tasks.Request, ranks int) bool {
	n := r.MeanBytes() * int64(ranks)
	if r.Blocks() {
		n *= int64(ranks)
	}
	return n <= maxTuned
}

// maxTuned bounds the buffers of a measurement, those of all ranks together. On a simulated
// machine each rank has as much as it needs, and maxBlocks bounds the blocks of one rank in a
// ladder of sizes.
const (
	maxTuned  = 4 << 30
	maxBlocks = 256 << 20
)

// oddEvery is the period of sizes in a ladder other than the first times a power of four.
const oddEvery = 5

// isListed reports whether --bytes lists the sizes to tune.
func (u *Tuning) isListed() bool { return u.Bytes != "" || u.IsGiven("bytes") }

// ReadSizes returns the sizes to tune, the smallest first.
func (u *Tuning) ReadSizes() ([]int64, error) {
	if !u.isListed() {
		return u.readLadder()
	}
	if err := cmp.Or(u.CheckExclusive("bytes", "min"), u.CheckExclusive("bytes", "max")); err != nil {
		return nil, err
	}
	all, err := kit.ParseSizes(u.Bytes)
	if err != nil {
		return nil, kit.Usagef("--bytes: %w", err)
	}
	slices.Sort(all)
	if all[0] < 1 {
		return nil, kit.Usagef("--bytes %s: from 1 byte on", u.Bytes)
	}
	return slices.Compact(all), nil
}

// readLadder returns the sizes from --min to --max.
func (u *Tuning) readLadder() ([]int64, error) {
	least, err := kit.ParseSize(u.min)
	if err != nil {
		return nil, kit.Usagef("--min: %w", err)
	}
	most, err := kit.ParseSize(u.max)
	if err != nil {
		return nil, kit.Usagef("--max: %w", err)
	}
	if least < 1 || most < least {
		return nil, kit.Usagef("--min %s, --max %s: from 1 byte on, and max not below min", u.min, u.max)
	}
	var all []int64
	for n, i := least, 1; n < most; n, i = n*4, i+1 {
		size := n
		if odd := n + n/2; i%oddEvery == 0 && odd < most && odd%16 == 0 {
			size = odd
		}
		all = append(all, size)
		if n > most/4 {
			break
		}
	}
	return append(all, most), nil
}

// readSpace reads the flags by which the search is narrowed.
func (u *Tuning) readSpace() error {
	s := tune.Space{Registry: u.Registry, Windows: u.windows, Numbers: u.numbers}
	for _, n := range u.numbers {
		if n < 0 || n == 1 || n > tasks.MaxNumber {
			return kit.Usagef("--numbers %d: 0, or 2 to %d", n, tasks.MaxNumber)
		}
	}
	for _, name := range splitWords(u.shapes) {
		p, err := tasks.ParsePlan("shape=" + name)
		if err != nil {
			return kit.Usagef("--shapes: %w", err)
		}
		s.Shapes = append(s.Shapes, p.Shape)
	}
	for _, name := range splitWords(u.submodules) {
		if _, err := u.Registry.Find(name); err != nil {
			return kit.Usagef("--submodules: %w", err)
		}
		s.Submodules = append(s.Submodules, name)
	}
	for _, list := range []struct {
		flag, text string
		least      int64
		into       *[]int64
	}{{"segments", u.segments, 1, &s.Segments}, {"inner", u.inners, 0, &s.Inners}} {
		for _, word := range splitWords(list.text) {
			n, err := tasks.ParseBytes(word)
			if err == nil && n < list.least {
				err = fmt.Errorf("%s: at least %d bytes", word, list.least)
			}
			if err != nil {
				return kit.Usagef("--%s: %w", list.flag, err)
			}
			*list.into = append(*list.into, n)
		}
	}
	for _, w := range s.Windows {
		if _, err := tasks.ParsePlan("w=" + strconv.Itoa(w)); err != nil {
			return kit.Usagef("--windows: %w", err)
		}
	}
	p, err := tasks.ParsePlan(u.Plan)
	if err == nil {
		err = u.Registry.Check(p)
	}
	if err != nil {
		return kit.Usagef("--plan: %w", err)
	}
	s.Plan = p
	u.Space = s
	return nil
}

func splitWords(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
