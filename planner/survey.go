package planner

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/pairs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// surveyDeadline bounds a measurement, which usually takes some hundredths of a second.
const surveyDeadline = 10 * time.Second

// measureMachine measures the machine with all ranks of a communicator that nothing else has
// been started on. Rank 0 puts the numbers together, all use what it has found, and it
// writes that to a file, unless keep is empty. A machine that can't be measured is no error:
// then nothing is known, and Explain says why. A rank that dies meanwhile is one.
func (c *Comm) measureMachine(ctx context.Context, keep string) error {
	if c.topology.Nodes() < 2 {
		c.machine = &choose.Machine{Why: "all ranks are on one node, where prices decide nothing"}
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, surveyDeadline, fmt.Errorf("it takes longer than %v", surveyDeadline))
	defer cancel()
	data, err := c.survey(ctx)
	if err != nil {
		return fmt.Errorf("measure the machine: %w", err)
	}
	if why, none := strings.CutPrefix(string(data), noMachine); none {
		c.machine = &choose.Machine{Why: why}
		return nil
	}
	if c.machine, err = parseMachine("ranks", data); err != nil {
		return fmt.Errorf("measure the machine: %w", err)
	}
	if keep != "" && c.Rank() == 0 {
		if err := keepFile(keep, data); err != nil {
			c.machine.Why = "it is not kept for the next job: " + err.Error()
		}
	}
	return nil
}

// survey returns the machine's file that rank 0 makes of what pairs of ranks measure, or
// [noMachine] and why.
func (c *Comm) survey(ctx context.Context) ([]byte, error) {
	begun := time.Now()
	if err := c.alongTree(ctx, tasks.Request{Coll: tasks.Barrier}, nil); err != nil {
		return nil, err
	}
	var rows []int64
	counts := make([]int, c.topology.Depth()) // pairs by level
	for k := range counts {
		level := pairs.At(c.topology, k)
		counts[k] = len(level)
		found := make([]int64, len(level)*pairs.ProbeFields)
		err := c.inPairs(ctx, level, func(at int, l *pairs.Leader) error {
			p, err := l.Probe(ctx)
			copy(found[at*pairs.ProbeFields:], p[:])
			return err
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	hosts := c.Size()
	rows = append(rows, make([]int64, hosts)...)
	rows[len(rows)-hosts+c.Rank()] = pairs.HostNumber()
	r := tasks.Request{Coll: tasks.Allreduce, Count: int64(len(rows)), Type: tasks.Int64, Op: tasks.Sum, InPlace: true}
	if err := c.alongTree(ctx, r, asBytes(rows)); err != nil {
		return nil, err
	}
	var data []byte
	if c.Rank() == 0 {
		s := surveyed{comm: c, rows: rows, counts: counts, took: time.Since(begun)}
		data = s.file()
	}
	return c.tellAll(ctx, data)
}

// tellAll returns rank 0's bytes on all ranks.
func (c *Comm) tellAll(ctx context.Context, data []byte) ([]byte, error) {
	size := []int64{int64(len(data))}
	if err := c.alongTree(ctx, tasks.Request{Coll: tasks.Bcast, Count: 1, Type: tasks.Int64}, asBytes(size)); err != nil {
		return nil, err
	}
	if size[0] < 1 || size[0] > maxMachine {
		return nil, fmt.Errorf("rank 0 announces a machine of %d bytes; allowed are %d", size[0], maxMachine)
	}
	if c.Rank() != 0 {
		data = make([]byte, size[0])
	}
	return data, c.alongTree(ctx, tasks.Request{Coll: tasks.Bcast, Count: size[0], Type: tasks.Uint8}, data)
}

// alongTree runs a collective of a measurement: along one binomial tree between nodes,
// whatever it is. When ranks have just joined each pair that speaks has to connect first, and
// the plans that are otherwise best make several times as many connections.
func (c *Comm) alongTree(ctx context.Context, r tasks.Request, buf []byte) error {
	col, err := c.treeCollective(r, buf)
	if err != nil {
		return err
	}
	return col.Run(ctx)
}

// treeCollective makes a collective for alongTree.
func (c *Comm) treeCollective(r tasks.Request, buf []byte) (*Collective, error) {
	p := tasks.Plan{Shape: tasks.Han}
	for k := range c.topology.Depth() {
		if c.topology.Domains(k) < c.topology.Nodes() {
			p = p.Set(string(c.topology.Level(k).Symbol), tasks.Choice{Submodule: submodules.Adapt, Algorithm: submodules.Binomial})
		}
	}
	d, err := policy{registry: c.registry, forced: tasks.Forced{{Plan: p}}}.choose(r, c.topology)
	if err != nil {
		return nil, err
	}
	return c.decided(&d, r, machineCall, nil, buf)
}

// surveyed is what rank 0 knows when all pairs have measured.
type surveyed struct {
	comm   *Comm
	rows   []int64 // of [pairs.Probe] by level and pair, then a number of its host for each rank
	counts []int   // pairs by level
	took   time.Duration
}

// file returns the machine's file, or [noMachine] and why.
func (s *surveyed) file() []byte {
	t := s.comm.topology
	m := machine.Assumed()
	probes, at := make([]pairs.Probe, len(s.counts)), 0
	for k, n := range s.counts {
		if n > 0 { // else nobody speaks there, or only where rank 0 isn't
			probes[k] = pairs.Median(s.rows[at : at+n*pairs.ProbeFields])
		}
		at += n * pairs.ProbeFields
	}
	pairs.Settle(probes)
	links, inside := []machine.Link{}, true
	for k, n := range s.counts {
		symbol := t.Level(k).Symbol
		like, err := m.Link(t.Level(k))
		if err != nil {
			like = m.Links[1] // as another network
		}
		if like.Level = machine.Symbol(symbol); n > 0 {
			like = probes[k].Link(like, pairs.Place{Inside: inside, OneProcess: t.IsOneProcess()})
		}
		links = append(links, like)
		inside = inside && symbol != levels.NodeSymbol
	}
	m.Links, m.TLS = links, s.comm.Secured() != "" && t.Nodes() > 1
	m.CopyByte, m.ReduceByte = pairs.OwnSpeed()
	m.Cores = pairs.Cores(t, s.rows[at:])
	m.Provenance = costs.Provenance{
		Method: choose.Hastily + s.took.Round(time.Millisecond).String(),
		Ranks:  ranksOf(t), Links: s.comm.links, Date: time.Now().UTC().Format(time.RFC3339),
	}
	data, err := m.Format()
	if err != nil {
		return []byte(noMachine + err.Error())
	}
	return data
}

// noMachine begins what rank 0 tells in place of a machine's file: why there is none.
const noMachine = "no machine: "
