package draw

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// drawing is the command dag.
type drawing struct {
	kit.Problem
	role     string
	rank     int
	all      bool
	segments string
	reduce   bool
	steps    bool
	stages   bool
	format   string
	out      string
	most     int    // --max-boxes; 0: any
	file     string // --simulate: a machine's file; empty: no path is marked

	reg     submodules.Registry
	request tasks.Request // one pass of it
	on      *levels.Hierarchy
	chosen  tasks.Plan
	ranks   []levels.Rank
	options viz.Options
}

// DagCommand returns dag.
func DagCommand(reg submodules.Registry) *cobra.Command {
	d := &drawing{reg: reg}
	c := &cobra.Command{
		Use:   "dag OP",
		Short: "Draw the task graph, the step graph or the pipeline stages of a collective",
		Long: `Draws what a collective (` + kit.AnyOf(tasks.Requestable()) + `)
is compiled to: the task graph of one rank or all, with --steps the steps that
tasks are lowered to, with --stages the pipeline as a table of segments and stages
(figures 1 and 5 of the HAN paper).

A task's name begins with its level, s inside a node and i between nodes, and ends
with what it does:
` + suffixes() + `#3 is segment 3's.

Without --role, --rank or --all it draws the root's graph: a leader on all levels.
A format that isn't given follows from the name of the file: .svg, .png, .dot, .json,
.txt; without a file it is text. svg and png need Graphviz. A picture of more than
--max-boxes tasks or steps is refused: --rank and --segments draw a part.`,
		Example: `  tierflow dag allreduce --topo 2x2 --bytes 3MiB -o allreduce.svg
  tierflow dag bcast --topo 4x2 --bytes 256KiB --steps --all --segments 0..1 --format dot
  tierflow dag allreduce --bytes 1MiB --plan fs=128KiB --stages
  tierflow dag allreduce --topo 4x1 --bytes 256KiB --all --simulate assumed -o allreduce.png
  tierflow dag allreduce --role member --format json`,
		Args: kit.Operand(kit.WhichCollective),
		RunE: kit.Checked(d.read, d.run),
	}
	d.AddPlannedFlags(c, kit.PlanText)
	d.AddTableFlag(c)
	f := c.Flags()
	f.StringVar(&d.role, "role", "", "draw a leader or a member")
	f.IntVar(&d.rank, "rank", 0, "draw this rank")
	f.BoolVar(&d.all, "all", false, "draw all ranks")
	f.StringVar(&d.segments, "segments", "", "draw segments a to b only: a..b, a.. or a")
	f.BoolVar(&d.reduce, "reduce", false, "leave out edges that others imply")
	f.BoolVar(&d.steps, "steps", false, "draw steps in place of tasks")
	f.BoolVar(&d.stages, "stages", false, "draw the pipeline's stages")
	f.StringVar(&d.file, "simulate", "", "mark the critical path of a simulation of the machine of this file, or assumed")
	f.IntVar(&d.most, "max-boxes", 400, "refuse a picture of more boxes; 0: draw any")
	f.StringVar(&d.format, "format", "", "dot, svg, png, text or json")
	f.StringVarP(&d.out, "output", "o", "", "file to write (default standard output)")
	kit.CompleteWords(c, "format", formats...)
	kit.CompleteWords(c, "role", "leader", "member")
	return c
}

// suffixes lists the ends of tasks' names, a line each.
func suffixes() string {
	var b strings.Builder
	for _, c := range tasks.Collectives() {
		if row := c.Row(); row.Suffix != "" {
			fmt.Fprintf(&b, "  %-3s %s\n", row.Suffix, row.Name)
		}
	}
	return b.String()
}

// run draws and writes.
func (d *drawing) run(ctx context.Context, stdout, stderr io.Writer) error {
	data, err := d.makeOutput(ctx, stderr)
	if err != nil {
		return err
	}
	if d.format != "text" {
		stdout = kit.Raw(stdout)
	}
	return kit.WriteOutput(stdout, d.out, data)
}

// read checks all arguments.
func (d *drawing) read(args []string) error {
	if err := cmp.Or(d.CheckExclusive("role", "rank", "all"), d.CheckExclusive("steps", "stages")); err != nil {
		return err
	}
	r, t, err := d.ReadPlanned(args[0], d.reg)
	if err != nil {
		return err
	}
	if d.chosen, err = d.Decide(r, t); err != nil {
		return err
	}
	cut, err := tasks.CutRequest(r, t, d.chosen)
	if err != nil {
		return kit.UsageError(err)
	}
	d.on, d.request = cut.On, cut.Parts()[0] // one pass stands for all
	for _, read := range []func() error{d.readFormat, d.readRanks, d.readSegments} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

var formats = []string{"dot", "svg", "png", "text", "json"}

func (d *drawing) readFormat() error {
	if d.format == "" {
		d.format = "text"
		switch ext := strings.TrimPrefix(filepath.Ext(d.out), "."); {
		case slices.Contains(formats, ext):
			d.format = ext
		case ext != "" && ext != "txt":
			return kit.Usagef("-o %s: no format of that name; known are .dot, .svg, .png, .json and .txt, or give --format", d.out)
		}
	}
	switch {
	case !slices.Contains(formats, d.format):
		return kit.Usagef("--format %q: known are %s", d.format, strings.Join(formats, ", "))
	case d.most < 0:
		return kit.Usagef("--max-boxes %d: give a number of boxes, 0 for any", d.most)
	case d.stages && (d.reduce || d.segments != "" || d.file != ""):
		return kit.Usagef("--stages: a table of stages is drawn whole, without --reduce, --segments and --simulate")
	}
	return nil
}

// readRanks finds the ranks to draw.
func (d *drawing) readRanks() error {
	size := d.on.Topology().Size()
	if d.IsGiven("rank") {
		if d.rank < 0 || d.rank >= size {
			return kit.Usagef("--rank %d: the ranks are 0 to %d", d.rank, size-1)
		}
		d.ranks = []levels.Rank{levels.Rank(d.rank)}
		return nil
	}
	switch {
	case d.all && d.stages:
		return kit.Usagef("--all: a table of stages is one rank's")
	case d.all:
		for r := range size {
			d.ranks = append(d.ranks, levels.Rank(r))
		}
	case d.role == "" || d.role == "leader":
		d.ranks = []levels.Rank{d.on.Root()}
	case d.role == "member":
		for r := range levels.Rank(size) {
			if g := d.on.Group(r, 0); g.Lead() != r {
				d.ranks = []levels.Rank{r}
				return nil
			}
		}
		return kit.Usagef("--role member: each of the %d ranks leads its group", size)
	default:
		return kit.Usagef("--role %q: known are leader and member", d.role)
	}
	return nil
}

// readSegments reads a..b, a.. or a. Both ends are drawn.
func (d *drawing) readSegments() error {
	d.options.Reduce = d.reduce
	if d.segments == "" {
		return nil
	}
	from, to, isRange := strings.Cut(d.segments, "..")
	if !isRange {
		to = from
	}
	a, err := strconv.ParseUint(from, 10, 31)
	b := a
	if to != "" && err == nil {
		b, err = strconv.ParseUint(to, 10, 30)
	}
	if err != nil || b < a {
		return kit.Usagef("--segments %q: write a..b, a.. or a, numbers from 0", d.segments)
	}
	d.options.From, d.options.To = int(a), int(b)+1
	if to == "" {
		d.options.To = 0
	}
	return nil
}

func (d *drawing) makeOutput(ctx context.Context, stderr io.Writer) ([]byte, error) {
	write := (*viz.Drawing).Text
	switch d.format {
	case "json":
		write = (*viz.Drawing).JSON
	case "dot", "svg", "png":
		write = (*viz.Drawing).DOT
	}
	var data []byte
	if d.stages {
		var err error
		if data, err = d.drawStages(); err != nil {
			return nil, err
		}
	} else {
		picture, err := d.makePicture(ctx, stderr)
		if err == nil && d.file != "" {
			err = d.markPath(ctx, picture, stderr)
		}
		if err != nil {
			return nil, err
		}
		data = write(picture)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if d.format == "svg" || d.format == "png" {
		return graphviz(ctx, data, d.format)
	}
	return data, nil
}

func (d *drawing) expandRank(r levels.Rank) (*tasks.Graph, error) {
	return tasks.ExpandOn(d.request, d.on, d.chosen, r)
}

func (d *drawing) drawStages() ([]byte, error) {
	g, err := d.expandRank(d.ranks[0])
	if err != nil {
		return nil, err
	}
	switch d.format {
	case "text":
		return viz.StageTable(g)
	case "json":
		return viz.StageJSON(g)
	}
	return viz.StageDOT(g)
}

// makePicture draws the graphs of the chosen ranks.
func (d *drawing) makePicture(ctx context.Context, stderr io.Writer) (*viz.Drawing, error) {
	var graphs []*tasks.Graph
	var programs []*submodules.Program
	need, err := d.checkNeed(ctx)
	if err != nil {
		return nil, err
	}
	bar := kit.NewProgress(stderr, "drawing", need)
	defer bar.Finish()
	d.options.Check = ctx.Err
	boxes := 0
	for i, r := range d.ranks {
		bar.Show(int64(i), int64(len(d.ranks)))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g, err := d.expandRank(r)
		if err != nil {
			return nil, err
		}
		if last := max(g.Segments-1, 0); d.options.From > last {
			return nil, kit.Usagef("--segments %s: the last segment is %d", d.segments, last)
		}
		graphs = append(graphs, g)
		var p *submodules.Program
		if d.steps || d.all { // one rank's tasks have no others to be connected with
			if p, err = submodules.Compile(g, d.on.Topology().Size(), d.reg); errors.Is(err, submodules.ErrUnsupported) {
				return nil, kit.UsageError(err)
			} else if err != nil {
				return nil, err
			}
			programs = append(programs, p)
		}
		boxes += d.countBoxes(g, p)
		if err := d.checkBoxes(boxes, i+1); err != nil {
			return nil, err
		}
	}
	if d.steps {
		return viz.Steps(programs, d.options)
	}
	picture, err := viz.Tasks(graphs, d.options)
	if err == nil {
		picture.ConnectTasks(programs)
	}
	return picture, err
}

// Bytes of memory for a step until it is drawn: as a box, or beneath a task's.
const (
	boxedStep   = 2000
	beneathTask = 600
)

// checkNeed tells the need of drawing several ranks; empty: one is drawn. It complains if it
// doesn't fit. A picture is bound by its boxes.
func (d *drawing) checkNeed(ctx context.Context) (string, error) {
	if len(d.ranks) == 1 || d.isBounded() {
		return "", nil
	}
	need, err := d.compilation(ctx).Need()
	if err != nil {
		return "", kit.UsageError(err)
	}
	bytes := need.Steps * beneathTask
	if d.steps {
		bytes = need.Steps * boxedStep
	}
	what := fmt.Sprintf("drawing %d steps of %d ranks", need.Steps, len(d.ranks))
	return kit.NeedText(what, bytes), kit.CheckMemory(what, bytes, "draw one rank (--rank 0), or "+kit.Less)
}

// compilation returns the compilation of the request for a simulation, until ctx ends.
func (d *drawing) compilation(ctx context.Context) *sim.Compilation {
	return &sim.Compilation{Request: d.request, Topology: d.on.Topology(), Plan: d.chosen, Registry: d.reg, Check: ctx.Err}
}

// isBounded reports whether --max-boxes says how much is drawn.
func (d *drawing) isBounded() bool { return d.most > 0 && d.format != "text" && d.format != "json" }

// countBoxes returns how many boxes a rank has.
func (d *drawing) countBoxes(g *tasks.Graph, p *submodules.Program) (n int) {
	if !d.steps {
		for id := range g.Len() {
			if d.options.Shows(int(g.Node(dag.ID(id)).Segment)) {
				n++
			}
		}
		return n
	}
	for i := range p.Steps() {
		if d.options.Shows(int(p.Task(&p.Steps()[i]).Segment)) {
			n++
		}
	}
	return n
}

// checkBoxes complains of a picture too large to read, with so many boxes of the first ranks.
func (d *drawing) checkBoxes(boxes, ranks int) error {
	if boxes <= d.most || !d.isBounded() {
		return nil
	}
	of := ""
	if ranks < len(d.ranks) {
		of = fmt.Sprintf(" of the first %d of %d ranks alone", ranks, len(d.ranks))
	}
	return kit.Usagef("a picture of %d boxes%s, more than --max-boxes %d: draw one rank (--rank 0), some segments (--segments 0..1), or raise --max-boxes (0: any)", boxes, of, d.most)
}

// markPath simulates the request and marks its critical path.
func (d *drawing) markPath(ctx context.Context, picture *viz.Drawing, stderr io.Writer) error {
	m, err := kit.ReadMachine("simulate", d.file)
	if err != nil {
		return err
	}
	c := d.compilation(ctx)
	need, err := c.Need()
	if err != nil {
		return kit.UsageError(err)
	}
	what, bytes := kit.SimulationText(c, need), need.Bytes+need.Path
	if err := kit.CheckMemory(what, bytes, "leave out --simulate, or "+kit.Less); err != nil {
		return err
	}
	bar := kit.NewProgress(stderr, "simulating", kit.NeedText(what, bytes))
	defer bar.Finish()
	job, err := c.Job()
	if err != nil {
		return kit.UsageError(err)
	}
	result, err := job.Run(m, sim.Options{Path: true, Check: func(steps int64) error {
		bar.Show(steps, job.Steps())
		return ctx.Err()
	}})
	if err != nil {
		return kit.UsageError(err)
	}
	picture.Title = append(picture.Title, fmt.Sprintf("marked: the critical path, %v, simulated on %s", result.Time, kit.MachineText(d.file, m)))
	picture.MarkPath(viz.SimulatedPath(job, result))
	return nil
}

// graphviz returns DOT as svg or png.
func graphviz(ctx context.Context, dot []byte, format string) ([]byte, error) {
	path, err := exec.LookPath("dot")
	if err != nil {
		return nil, fmt.Errorf("%s is drawn by Graphviz's program dot, which isn't here: install Graphviz (apt-get install graphviz, brew install graphviz) or use --format dot", format)
	}
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "-T"+format)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(dot), &out, &complaints
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("dot -T%s: %w: %s", format, err, firstLine(&complaints))
	}
	return out.Bytes(), nil
}

func firstLine(r io.Reader) string {
	all, _ := io.ReadAll(r) // of a buffer
	line, _, _ := strings.Cut(string(all), "\n")
	return line
}
