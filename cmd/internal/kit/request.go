package kit

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"

	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// maxTopology bounds the file of a topology, bytes: the names of all ranks' domains.
const maxTopology = 64 << 20

// ReadTopology reads --topo: a spec, the name of a file of JSON, or JSON itself.
func (p *Problem) ReadTopology() (t *levels.Topology, err error) {
	switch {
	case strings.HasPrefix(p.Topo, "{"):
		t, err = levels.ParseJSON("", []byte(p.Topo))
	case strings.HasSuffix(p.Topo, ".json"):
		var data []byte
		if data, err = files.Read(p.Topo, maxTopology); err == nil {
			t, err = levels.ParseJSON(p.Topo, data)
		}
	default:
		t, err = levels.Parse(p.Topo)
	}
	if err != nil {
		return nil, Usagef("--topo: %w", err)
	}
	return t, nil
}

// ReadRequest returns the request for one size. All complaints come at once.
func (p *Problem) ReadRequest(coll tasks.Collective, bytes int64, t *levels.Topology) (tasks.Request, error) {
	r := tasks.Request{Coll: coll}
	if !coll.HasData() {
		return r, nil
	}
	var errs []error
	var err error
	if r.Type, err = tasks.ParseDatatype(p.Type); err != nil {
		errs = append(errs, fmt.Errorf("--dtype: %w", err))
	} else if p.Counts != "" {
		if err = readCounts(&r, p.Counts, t.Size()); err != nil {
			errs = append(errs, fmt.Errorf("--counts: %w", err))
		}
	} else if size := int64(r.Type.Size()); bytes%size != 0 {
		errs = append(errs, fmt.Errorf("--bytes %s: not a multiple of %d bytes, the size of %v", tasks.FormatBytes(bytes), size, r.Type))
	} else {
		r.Count = bytes / size
	}
	if r.Reduces() {
		r.Op, err = p.readOperation(r.Type)
		errs = append(errs, err)
	}
	if r.Rooted() {
		if p.Root < 0 || p.Root >= t.Size() { // before it is cut to the bits of a rank
			errs = append(errs, fmt.Errorf("--root %d: ranks are 0 to %d", p.Root, t.Size()-1))
		}
		r.Root = levels.Rank(p.Root)
	}
	if err := errors.Join(errs...); err != nil {
		return r, UsageError(err)
	}
	return r, UsageError(r.Validate(t.Size()))
}

// readOperation reads --reduce-op. The operation must be defined on t.
func (p *Problem) readOperation(t tasks.Datatype) (tasks.Op, error) {
	op, err := tasks.ParseOp(p.Op)
	if err == nil && t.Valid() {
		_, err = kernel.For(op, t)
	}
	if err != nil {
		return op, fmt.Errorf("--reduce-op: %w", err)
	}
	return op, nil
}

// readCounts fills in blocks of different lengths; without any elements they are equal, as in the
// planner.
func readCounts(r *tasks.Request, text string, ranks int) (err error) {
	if r.Coll.HasMatrix() {
		r.Matrix, err = ParseMatrix(text, ranks)
	} else {
		r.Counts, err = ParseCounts(text, ranks)
	}
	if r.Count = max(r.Counts.Max(), r.Matrix.Max()); r.Count == 0 {
		r.Counts, r.Matrix = tasks.Counts{}, tasks.Matrix{}
	}
	return err
}

// ParseMatrix reads 1,0;3,2: a row for each rank, with the elements that it gives each rank.
func ParseMatrix(text string, ranks int) (m tasks.Matrix, err error) {
	rows := [][]int{}
	for row := range strings.SplitSeq(text, ";") {
		counts, err := ParseCounts(row, ranks)
		if err != nil {
			return m, err
		}
		rows = append(rows, []int{})
		for to := range ranks {
			rows[len(rows)-1] = append(rows[len(rows)-1], int(counts.At(to)))
		}
	}
	if len(rows) != ranks {
		return m, fmt.Errorf("%q: %d rows for %d ranks; write one for each, such as 1,0;3,2", text, len(rows), ranks)
	}
	return tasks.NewMatrix(rows)
}

// ParseCounts reads 1,0,3: the elements of each rank.
func ParseCounts(text string, ranks int) (tasks.Counts, error) {
	var counts []int
	for item := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(item)
		if err != nil {
			return tasks.Counts{}, fmt.Errorf("%q: write the elements of each rank's block, such as 1,0,3", text)
		}
		counts = append(counts, n)
	}
	if len(counts) != ranks {
		return tasks.Counts{}, fmt.Errorf("%q: %d blocks for %d ranks", text, len(counts), ranks)
	}
	return tasks.NewCounts(counts)
}

// CheckFlags complains of flags without a meaning for any of colls, and of counts if one of colls
// can't have any.
func (p *Problem) CheckFlags(colls ...tasks.Collective) error {
	if p.Counts != "" {
		for _, c := range colls {
			if !c.HasCounts() && !c.HasMatrix() {
				return Usagef("--counts: %v has no blocks that differ; %s has", c, AnyOf(withCounts()))
			}
		}
		if err := p.CheckExclusive("bytes", "counts"); err != nil {
			return err
		}
	}
	has := map[string]bool{}
	for _, c := range colls {
		has["root"] = has["root"] || c.IsRooted()
		has["reduce-op"] = has["reduce-op"] || c.Reduces()
		has["dtype"] = has["dtype"] || c.HasData()
		has["bytes"] = has["bytes"] || c.HasData()
	}
	var errs []error
	for _, name := range []string{"root", "reduce-op", "dtype", "bytes"} {
		if p.IsGiven(name) && !has[name] {
			errs = append(errs, fmt.Errorf("--%s: %v has no such thing", name, colls[0]))
		}
	}
	return UsageError(errors.Join(errs...))
}

// ReadSize reads --bytes as one size.
func (p *Problem) ReadSize() (int64, error) {
	all, err := ParseSizes(p.Bytes)
	if err != nil {
		return 0, Usagef("--bytes: %w", err)
	}
	if len(all) != 1 {
		return 0, Usagef("--bytes %s: %d sizes; give one", p.Bytes, len(all))
	}
	return all[0], nil
}

// ParseSizeWithin reads the text of --bytes: one size from least to most.
func ParseSizeWithin(text string, least, most int64) (int64, error) {
	all, err := ParseSizes(text)
	if err != nil {
		return 0, Usagef("--bytes: %w", err)
	}
	if len(all) != 1 || all[0] < least || all[0] > most {
		return 0, Usagef("--bytes %s: allowed is one size from %s to %s", text, tasks.FormatBytes(least), tasks.FormatBytes(most))
	}
	return all[0], nil
}

// ReadOne reads a request and its machine. The operand is the collective.
func (p *Problem) ReadOne(operand string) (r tasks.Request, t *levels.Topology, err error) {
	coll, err := ParseCollective(operand)
	if err != nil {
		return r, nil, err
	}
	if err := p.CheckFlags(coll); err != nil {
		return r, nil, err
	}
	if t, err = p.ReadTopology(); err != nil {
		return r, nil, err
	}
	n, err := p.ReadSize()
	if err != nil {
		return r, nil, err
	}
	r, err = p.ReadRequest(coll, n, t)
	return r, t, err
}

// ReadPlanned is ReadOne for commands whose plans may be forced, or come from a table.
func (p *Problem) ReadPlanned(operand string, reg submodules.Registry) (r tasks.Request, t *levels.Topology, err error) {
	if r, t, err = p.ReadOne(operand); err != nil {
		return r, nil, err
	}
	if _, err := p.ReadForced(reg); err != nil {
		return r, nil, err
	}
	return r, t, p.CheckTable()
}

// ReadForced reads --plan, or the environment if it isn't given.
func (p *Problem) ReadForced(reg submodules.Registry) (tasks.Forced, error) {
	text, origin := p.Plan, "--plan"
	if text == "" {
		text, origin = os.Getenv(env.Plan), env.Plan
	}
	f, err := choose.ParseForced(text, origin, reg)
	return f, UsageError(err)
}

// CheckTable reads the file of --table and complains if it can't be used.
func (p *Problem) CheckTable() error {
	if p.Table == "" {
		return nil
	}
	if _, err := choose.LoadTable(p.Table, all.Submodules()); err != nil {
		return Usagef("--table: %w", err)
	}
	return nil
}

// Options returns those of --plan, --table and --machine.
func (p *Problem) Options() *planner.Options {
	o := &planner.Options{Plan: p.Plan, Table: p.Table}
	if p.machine != nil {
		o.Machine, o.Files = "--machine", fstest.MapFS{"--machine": {Data: p.machine}}
	}
	return o
}

// Decide returns a communicator's plan for a request.
func (p *Problem) Decide(r tasks.Request, t *levels.Topology) (tasks.Plan, error) {
	plan, err := planner.Decide(r, t, p.Options())
	return plan, UsageError(err)
}

// ParseCollective reads the name of a collective.
func ParseCollective(name string) (tasks.Collective, error) {
	c, err := tasks.ParseCollective(name)
	return c, UsageError(err)
}

// ParseCollectives reads a list such as bcast,allreduce; all stands for all collectives of
// programs.
func ParseCollectives(list string) ([]tasks.Collective, error) {
	if list == "all" {
		return tasks.Requestable(), nil
	}
	var all []tasks.Collective
	for _, name := range strings.Split(list, ",") {
		c, err := ParseCollective(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, c) {
			return nil, Usagef("collective %v is given twice", c)
		}
		all = append(all, c)
	}
	return all, nil
}
