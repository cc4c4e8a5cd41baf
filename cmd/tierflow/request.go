package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// topology reads --topo: a spec, the name of a file of JSON, or JSON itself.
func (p *problem) topology() (t *levels.Topology, err error) {
	switch {
	case strings.HasPrefix(p.topo, "{"):
		t, err = levels.ParseJSON("", []byte(p.topo))
	case strings.HasSuffix(p.topo, ".json"):
		var data []byte
		if data, err = os.ReadFile(p.topo); err == nil {
			t, err = levels.ParseJSON(p.topo, data)
		}
	default:
		t, err = levels.Parse(p.topo)
	}
	if err != nil {
		return nil, usagef("--topo: %w", err)
	}
	return t, nil
}

// request makes the request for one size; all that is wrong comes at once.
func (p *problem) request(coll tasks.Collective, bytes int64, t *levels.Topology) (tasks.Request, error) {
	r := tasks.Request{Coll: coll}
	if !coll.HasData() {
		return r, nil
	}
	var errs []error
	var err error
	if r.Type, err = tasks.ParseDatatype(p.dtype); err != nil {
		errs = append(errs, fmt.Errorf("--dtype: %w", err))
	} else if p.counts != "" {
		if r.Counts, err = parseCounts(p.counts, t.Size()); err != nil {
			errs = append(errs, fmt.Errorf("--counts: %w", err))
		}
		if r.Count = r.Counts.Max(); r.Count == 0 { // as the planner does it
			r.Counts = tasks.Counts{}
		}
	} else if size := int64(r.Type.Size()); bytes%size != 0 {
		errs = append(errs, fmt.Errorf("--bytes %s: not a multiple of %d bytes, the size of %v", tasks.FormatBytes(bytes), size, r.Type))
	} else {
		r.Count = bytes / size
	}
	if r.Reduces() {
		r.Op, err = p.operation(r.Type)
		errs = append(errs, err)
	}
	if r.Rooted() {
		if p.root < 0 || p.root >= t.Size() { // before it is cut to the bits of a rank
			errs = append(errs, fmt.Errorf("--root %d: ranks are 0 to %d", p.root, t.Size()-1))
		}
		r.Root = levels.Rank(p.root)
	}
	if err := errors.Join(errs...); err != nil {
		return r, usage(err)
	}
	return r, usage(r.Validate(t.Size()))
}

// operation reads --reduce-op, which must be defined on t.
func (p *problem) operation(t tasks.Datatype) (tasks.Op, error) {
	op, err := tasks.ParseOp(p.op)
	if err == nil && t.Valid() {
		_, err = kernel.For(op, t)
	}
	if err != nil {
		return op, fmt.Errorf("--reduce-op: %w", err)
	}
	return op, nil
}

// parseCounts reads 1,0,3: the elements of each rank.
func parseCounts(text string, ranks int) (tasks.Counts, error) {
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

// applies complains of flags that were given though none of the collectives has
// what they say, and of counts where one of them can't have any.
func (p *problem) applies(colls ...tasks.Collective) error {
	if p.counts != "" {
		for _, c := range colls {
			if !c.HasCounts() {
				return usagef("--counts: %v has no blocks that differ; %s has", c, anyOf(withCounts()))
			}
		}
		if err := p.exclusive("bytes", "counts"); err != nil {
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
		if p.isGiven(name) && !has[name] {
			errs = append(errs, fmt.Errorf("--%s: %v has no such thing", name, colls[0]))
		}
	}
	return usage(errors.Join(errs...))
}

// size reads --bytes where it is one size.
func (p *problem) size() (int64, error) {
	all, err := parseSizes(p.bytes)
	if err != nil {
		return 0, usagef("--bytes: %w", err)
	}
	if len(all) != 1 {
		return 0, usagef("--bytes %s: %d sizes; give one", p.bytes, len(all))
	}
	return all[0], nil
}

// one reads all that makes one request.
func (p *problem) one(operand string) (r tasks.Request, t *levels.Topology, err error) {
	coll, err := collective(operand)
	if err != nil {
		return r, nil, err
	}
	if err := p.applies(coll); err != nil {
		return r, nil, err
	}
	if t, err = p.topology(); err != nil {
		return r, nil, err
	}
	n, err := p.size()
	if err != nil {
		return r, nil, err
	}
	r, err = p.request(coll, n, t)
	return r, t, err
}

// forced reads --plan, or the environment if it isn't given.
func (p *problem) forced(reg submodules.Registry) (tasks.Forced, error) {
	text, origin := p.plan, "--plan"
	if text == "" {
		text, origin = os.Getenv(planner.PlanVariable), planner.PlanVariable
	}
	f, err := tasks.ParseForced(text)
	if err != nil {
		return nil, usagef("%s: %w", origin, err)
	}
	for _, item := range f {
		if err := reg.Check(item.Plan); err != nil {
			return nil, usagef("%s: %w", origin, err)
		}
	}
	return f, nil
}

// checkTable reads the file of --table.
func (p *problem) checkTable() error {
	if p.table == "" {
		return nil
	}
	if _, err := planner.LoadTable(p.table, all.Submodules()); err != nil {
		return usagef("--table: %w", err)
	}
	return nil
}

// options are those of --plan and --table.
func (p *problem) options() *planner.Options { return &planner.Options{Plan: p.plan, Table: p.table} }

// decided is the plan for a request, as a communicator chooses it.
func (p *problem) decided(r tasks.Request, t *levels.Topology) (tasks.Plan, error) {
	plan, err := planner.Decide(r, t, p.options())
	return plan, usage(err)
}

// collective reads an operand.
func collective(name string) (tasks.Collective, error) {
	c, err := tasks.ParseCollective(name)
	return c, usage(err)
}

// parseCollectives reads bcast,allreduce.
func parseCollectives(list string) ([]tasks.Collective, error) {
	var all []tasks.Collective
	for _, name := range strings.Split(list, ",") {
		c, err := collective(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, c) {
			return nil, usagef("collective %v is given twice", c)
		}
		all = append(all, c)
	}
	return all, nil
}
