package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// tuning is the flags of the tune commands.
type tuning struct {
	problem
	reg    submodules.Registry
	job    job
	link   string
	ops    string
	min    string
	max    string
	method string
	budget time.Duration
	time   time.Duration
	json   bool
	svg    string

	output string
	resume bool

	shapes, submodules, segments, inners string
	windows                              []int

	requests []tasks.Request
	space    planner.Space
	stop     costs.Stop
}

func (a app) tuneCommand() *cobra.Command {
	u := &tuning{reg: a.registry}
	c := &cobra.Command{
		Use:   "tune -o FILE",
		Short: "Measure, search and write a decision table",
		Long: `Looks for the fastest plan of each collective and size on this machine and writes
a decision table, which planner.Options.Table or TIERFLOW_TABLE then name.

Methods (--method), as in HAN, section III-C:
  exhaustive             runs every configuration with every size
  exhaustive+heuristics  leaves out what rarely wins: solo below segments of 512 KiB,
                         chains with fewer pieces than ranks, cuts through messages of
                         at most 16 KiB, linear exchanges of over 16 ranks, messages
                         inside a node
  tasks                  runs each configuration once, for some segments, and predicts
                         all sizes from that; plans of one segment are run with every
                         third size
  tasks+heuristics       both

A measurement ends when the 95% interval of the mean is within 2.5% of it, or after
--time, the same for all methods. --budget bounds the whole search: what is not
measured by then is left out, in an order that leaves no kind of plan out.
Interrupted (Ctrl-C), it writes what it has; --resume goes on from there, and also
adds another machine to a table. All ranks tune together: those of a launched job,
or goroutines on --topo.

Sizes go from --min to --max by factors of four; every fifth is one and a half times
that, because not all messages are powers of two.`,
		Example: `  tierflow tune -o table.json --topo 4x2
  tierflow tune -o table.json --topo 2x2 --ops bcast --method exhaustive --budget 2m
  tierflow run -n 8 -- tierflow tune -o table.json --resume
  TIERFLOW_TABLE=table.json tierflow plan allreduce --bytes 100000 --topo 3x2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q; known are compare, validate, check; to tune give -o FILE and no argument", args[0])
			}
			return nil
		},
		RunE: interruptible(func(c *cobra.Command, _ []string) error {
			return u.each(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), u.tune)
		}),
	}
	u.flags(c, "4B", "16MiB")
	f := c.Flags()
	f.StringVarP(&u.output, "output", "o", "", "file to write the table to")
	f.StringVar(&u.method, "method", planner.TasksPruned.String(), "how to search")
	f.DurationVar(&u.budget, "budget", 0, "time for the whole search (default no limit)")
	f.BoolVar(&u.resume, "resume", false, "keep what the file has, and add to it")
	f.BoolVar(&u.json, "json", false, "print a summary as JSON")
	c.AddCommand(a.tuneCompareCommand(), a.tuneValidateCommand(), a.tuneCheckCommand())
	return c
}

// flags are those that all tune commands have.
func (u *tuning) flags(c *cobra.Command, least, most string) {
	u.topoFlag(c, "4x2")
	f := c.Flags()
	f.StringVar(&u.link, "link", "", linkText+" (default "+defaultLink+" if there are nodes)")
	f.StringVar(&u.ops, "ops", strings.Join(names(tasks.Requestable()), ","), "collectives")
	f.StringVar(&u.min, "min", least, "smallest size of a rank's buffer")
	f.StringVar(&u.max, "max", most, "largest size")
	f.StringVar(&u.dtype, "dtype", "f32", "element type")
	f.StringVar(&u.op, "reduce-op", "sum", "operation of reductions")
	f.DurationVar(&u.time, "time", 50*time.Millisecond, "most time for one measurement, beyond five samples")
	f.StringVar(&u.shapes, "shapes", "", "shapes to search (default all)")
	f.StringVar(&u.submodules, "submodules", "", "submodules to search (default all)")
	f.StringVar(&u.segments, "segments", "", "segment sizes to search (default "+sizesText(planner.DefaultSegments)+")")
	f.StringVar(&u.inners, "inner", "", "inner segments to search, 0 for none (default "+sizesText(planner.DefaultInners)+")")
	f.IntSliceVar(&u.windows, "windows", planner.DefaultWindows, "windows to search")
	u.planFlag(c, planText+"; what it says is not searched")
}

func sizesText(all []int64) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = tasks.FormatBytes(n)
	}
	return strings.Join(texts, ",")
}

// each reads the flags, makes or joins the job, and calls f for each of its ranks
// that are here. Ranks go on when ctx ends: it is for f to ask.
func (u *tuning) each(ctx context.Context, stdout, stderr io.Writer, f func(ctx context.Context, r *tuneRank) error) error {
	if isLaunched() {
		for _, flag := range []string{"topo", "link"} {
			if u.command.Flags().Changed(flag) {
				return usagef("--%s: this process is a rank of a launched job, whose topology and links are real", flag)
			}
		}
		j, out, notes, err := joinJob(ctx, stdout, stderr)
		if err != nil {
			return err
		}
		u.job = j
		if err = u.read(); err == nil {
			err = u.run(ctx, out, notes, f)
		}
		return errors.Join(err, j.world.Close())
	}
	t, err := u.topology()
	if err != nil {
		return err
	}
	l, err := parseLink(u.link, t)
	if err != nil {
		return usagef("--link: %w", err)
	}
	u.job = goroutines{topology: t, link: l}
	if err := u.read(); err != nil {
		return err
	}
	return u.run(ctx, stdout, stderr, f)
}

// tuneRank is one rank at work.
type tuneRank struct {
	comm   *planner.Comm
	meter  planner.Meter
	asked  context.Context // ends when the user wants an end
	stdout io.Writer
	stderr io.Writer
}

// first reports whether this is rank 0, which prints and writes.
func (r *tuneRank) first() bool { return r.comm.Rank() == 0 }

func (u *tuning) run(ctx context.Context, stdout, stderr io.Writer, f func(ctx context.Context, r *tuneRank) error) error {
	return runRanks(context.WithoutCancel(ctx), u.job, []string{""}, func(inner context.Context, comms []*planner.Comm) error {
		r := &tuneRank{comm: comms[0], asked: ctx, stdout: stdout, stderr: stderr}
		if !r.first() {
			r.stdout, r.stderr = io.Discard, io.Discard
		}
		var err error
		if r.meter, err = planner.NewMeter(inner, r.comm); err != nil {
			return err
		}
		return f(inner, r)
	})
}

// read checks the flags that don't depend on ranks.
func (u *tuning) read() error {
	colls, err := parseCollectives(u.ops)
	if err != nil {
		return err
	}
	sizes, err := u.sizes()
	if err != nil {
		return err
	}
	if u.time <= 0 || u.budget < 0 {
		return usagef("--time %v, --budget %v: a time is above 0", u.time, u.budget)
	}
	u.stop = costs.Stop{Budget: u.time}
	if err := u.readSpace(); err != nil {
		return err
	}
	t := u.job.Topology()
	for _, coll := range colls {
		for _, n := range sizes {
			r, err := u.request(coll, n, t)
			if err != nil {
				return err
			}
			if !slices.Contains(u.requests, r) && fitsMemory(r, t.Size()) {
				u.requests = append(u.requests, r)
			}
		}
	}
	return nil
}

// fitsMemory leaves out sizes of which all ranks' blocks would be too much.
func fitsMemory(r tasks.Request, ranks int) bool {
	n := r.Bytes() * int64(ranks)
	if r.Blocks() {
		n *= int64(ranks)
	}
	return n <= maxTuned
}

// maxTuned bounds the buffers of a measurement, those of all ranks together.
const maxTuned = 4 << 30

// oddEvery is which of the sizes is none of the powers of four times the first.
const oddEvery = 5

// sizes lists the sizes to tune.
func (u *tuning) sizes() ([]int64, error) {
	least, err := parseSize(u.min)
	if err != nil {
		return nil, usagef("--min: %w", err)
	}
	most, err := parseSize(u.max)
	if err != nil {
		return nil, usagef("--max: %w", err)
	}
	if least < 1 || most < least {
		return nil, usagef("--min %s, --max %s: from 1 byte on, and max not below min", u.min, u.max)
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

// readSpace reads what narrows the search.
func (u *tuning) readSpace() error {
	s := planner.Space{Registry: u.reg, Windows: u.windows}
	for _, name := range words(u.shapes) {
		p, err := tasks.ParsePlan("shape=" + name)
		if err != nil {
			return usagef("--shapes: %w", err)
		}
		s.Shapes = append(s.Shapes, p.Shape)
	}
	for _, name := range words(u.submodules) {
		if _, err := u.reg.Find(name); err != nil {
			return usagef("--submodules: %w", err)
		}
		s.Submodules = append(s.Submodules, name)
	}
	for _, list := range []struct {
		flag, text string
		least      int64
		into       *[]int64
	}{{"segments", u.segments, 1, &s.Segments}, {"inner", u.inners, 0, &s.Inners}} {
		for _, word := range words(list.text) {
			n, err := tasks.ParseBytes(word)
			if err == nil && n < list.least {
				err = fmt.Errorf("%s: at least %d bytes", word, list.least)
			}
			if err != nil {
				return usagef("--%s: %w", list.flag, err)
			}
			*list.into = append(*list.into, n)
		}
	}
	for _, w := range s.Windows {
		if _, err := tasks.ParsePlan("w=" + strconv.Itoa(w)); err != nil {
			return usagef("--windows: %w", err)
		}
	}
	p, err := tasks.ParsePlan(u.plan)
	if err == nil {
		err = u.reg.Check(p)
	}
	if err != nil {
		return usagef("--plan: %w", err)
	}
	s.Plan = p
	u.space = s
	return nil
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// search is one search by one rank; the budget counts from now.
func (u *tuning) search(ctx context.Context, r *tuneRank, m planner.Method, table *planner.Table, save func(*planner.Table) error) (*planner.Table, error) {
	bar := newProgress(r.stderr, m.String())
	begin := time.Now()
	s := &planner.Search{
		Topology: r.comm.Topology(), Requests: u.requests, Space: u.space, Method: m, Stop: u.stop, Table: table,
		Progress: bar.show,
		Interrupted: func(ctx context.Context) (bool, error) {
			over := u.budget > 0 && time.Since(begin) > u.budget
			return r.comm.Any(ctx, r.first() && over || r.asked.Err() != nil)
		},
	}
	if r.first() {
		s.Save = save
	}
	table, err := s.Run(ctx, r.meter)
	bar.end()
	if table != nil {
		table.Provenance.Seconds = time.Since(begin).Seconds()
	}
	return table, err
}

// tune is what one rank does for tune.
func (u *tuning) tune(ctx context.Context, r *tuneRank) error {
	m, err := planner.ParseMethod(u.method)
	if err != nil {
		return usagef("--method: %w", err)
	}
	if u.output == "" {
		return usagef("no file for the table; give -o FILE")
	}
	table, err := u.begin(ctx, r)
	if err != nil {
		return err
	}
	u.describe(table, r, m)
	before := table.Provenance.Seconds
	save := func(t *planner.Table) error {
		data, err := t.Encode()
		if err != nil {
			return err
		}
		return writeOutput(r.stdout, u.output, data)
	}
	table, err = u.search(ctx, r, m, table, save)
	if err != nil && !errors.Is(err, planner.ErrInterrupted) {
		return err
	}
	table.Provenance.Seconds += before
	if !r.first() {
		return nil
	}
	if err := save(table); err != nil {
		return err
	}
	if err := u.summary(r, table); err != nil {
		return err
	}
	if err != nil && r.asked.Err() != nil {
		return fmt.Errorf("%w; --resume goes on", err)
	}
	return nil
}

// begin is the table to add to. Rank 0's file counts: all ranks must agree on
// what there is to measure.
func (u *tuning) begin(ctx context.Context, r *tuneRank) (*planner.Table, error) {
	table := &planner.Table{Version: planner.TableVersion}
	if !u.resume {
		return table, nil
	}
	var data []byte
	var failed error
	if r.first() {
		var t *planner.Table
		t, failed = planner.LoadTable(u.output, u.reg)
		switch {
		case errors.Is(failed, fs.ErrNotExist):
			failed = nil
		case failed == nil:
			if failed = u.continues(t); failed == nil {
				data, failed = t.Encode()
			}
		}
	}
	reason := ""
	if failed != nil {
		reason = failed.Error()
	}
	if why, err := shareBytes(ctx, r.comm, []byte(reason)); err != nil || len(why) > 0 {
		return nil, cmp.Or(err, errors.New(string(why)))
	}
	data, err := shareBytes(ctx, r.comm, data)
	if err != nil || len(data) == 0 {
		return table, err
	}
	return planner.ParseTable(u.output, data, u.reg)
}

// continues complains about a table that was measured on other links: its numbers
// can't be compared with new ones.
func (u *tuning) continues(t *planner.Table) error {
	if have, now := t.Provenance.Links, linksText(u.job); have != "" && have != now {
		return fmt.Errorf("--resume: %s was measured over links %q, these are %q", u.output, have, now)
	}
	return nil
}

// shareBytes gives all ranks rank 0's bytes.
func shareBytes(ctx context.Context, c *planner.Comm, data []byte) ([]byte, error) {
	n := []int64{int64(len(data))}
	if err := planner.BcastNow(ctx, c, n, 0); err != nil {
		return nil, err
	}
	if n[0] == 0 {
		return nil, nil
	}
	if c.Rank() > 0 {
		data = make([]byte, n[0])
	}
	return data, planner.BcastNow(ctx, c, data, 0)
}

// tuneSummary is what tune prints.
type tuneSummary struct {
	File         string         `json:"file"`
	Method       string         `json:"method"`
	Measurements int            `json:"measurements"`
	Planned      int            `json:"planned"`
	Rejected     planner.Counts `json:"rejected"`
	Seconds      float64        `json:"seconds"`
	Entries      int            `json:"entries"`
	Violations   []string       `json:"violations"`
}

func (u *tuning) summary(r *tuneRank, t *planner.Table) error {
	p := t.Provenance
	s := tuneSummary{u.output, p.Method, p.Configurations, p.Planned, p.Rejected, p.Seconds, len(t.Entries), []string{}}
	for _, v := range t.Violations() {
		s.Violations = append(s.Violations, v.String())
	}
	if u.json {
		return writeJSON(r.stdout, s)
	}
	out := r.stdout
	if u.output == "-" {
		out = r.stderr
	}
	fmt.Fprintf(out, "%s: %d entries by %s, %d of %d measurements in %.1f s\n", s.File, s.Entries, s.Method, s.Measurements, s.Planned, s.Seconds)
	if len(s.Rejected) > 0 {
		fmt.Fprintf(out, "not measured: %s\n", planner.RejectionText(s.Rejected))
	}
	for _, v := range s.Violations {
		fmt.Fprintf(out, "guideline: %s\n", v)
	}
	return nil
}
