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
	"github.com/tierflow/tierflow/planner/internal/cache"
	"github.com/tierflow/tierflow/tasks"
)

// surveyDeadline bounds a measurement, which usually takes some hundredths of a second.
const surveyDeadline = 10 * time.Second

// measureMachine measures the machine with all ranks of a communicator without other calls.
// Rank 0 makes a machine of the numbers, all ranks use it, and rank 0
// writes it to a file, unless keep is empty. If the machine can't be measured, nothing is known, and
// Explain says why. The death of a rank meanwhile is an error.
func (p *policy) measureMachine(ctx context.Context, b *base, sealed bool) error {
	if b.topology.Nodes() < 2 {
		p.machine = &choose.Machine{Why: "all ranks are on one node, where prices decide nothing"}
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, surveyDeadline, fmt.Errorf("it takes longer than %v", surveyDeadline))
	defer cancel()
	data, err := b.survey(ctx, p.common.Links, sealed)
	if err != nil {
		return fmt.Errorf("measure the machine: %w", err)
	}
	if why, none := strings.CutPrefix(string(data), noMachine); none {
		p.machine = &choose.Machine{Why: why}
		return nil
	}
	if p.machine, err = parseMachine("ranks", data); err != nil {
		return fmt.Errorf("measure the machine: %w", err)
	}
	if p.keep != "" && b.comm.Rank() == 0 {
		if err := cache.Write(p.keep, data); err != nil {
			p.machine.Why = "it is not kept for the next job: " + err.Error()
		}
	}
	return nil
}

// survey returns the machine's file that rank 0 makes of the measurements of pairs of ranks, or
// [noMachine] and why.
func (b *base) survey(ctx context.Context, links string, sealed bool) ([]byte, error) {
	begun := time.Now()
	if err := b.alongTree(ctx, tasks.Request{Coll: tasks.Barrier}, nil); err != nil {
		return nil, err
	}
	var rows []int64
	counts := make([]int, b.topology.Depth()) // pairs by level
	for k := range counts {
		level := pairs.At(b.topology, k)
		counts[k] = len(level)
		found := make([]int64, len(level)*pairs.ProbeFields)
		err := b.inPairs(ctx, level, func(at int, l *pairs.Leader) error {
			p, err := l.Probe(ctx)
			copy(found[at*pairs.ProbeFields:], p[:])
			return err
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	hosts := b.topology.Size()
	rows = append(rows, make([]int64, hosts)...)
	rows[len(rows)-hosts+int(b.comm.Rank())] = pairs.HostNumber()
	r := tasks.Request{Coll: tasks.Allreduce, Count: int64(len(rows)), Type: tasks.Int64, Op: tasks.Sum, InPlace: true}
	if err := b.alongTree(ctx, r, asBytes(rows)); err != nil {
		return nil, err
	}
	var data []byte
	if b.comm.Rank() == 0 {
		s := surveyResult{topology: b.topology, links: links, sealed: sealed, rows: rows, counts: counts, took: time.Since(begun)}
		data = s.file()
	}
	return b.tellAll(ctx, data)
}

// tellAll returns rank 0's bytes on all ranks.
func (b *base) tellAll(ctx context.Context, data []byte) ([]byte, error) {
	size := []int64{int64(len(data))}
	if err := b.alongTree(ctx, tasks.Request{Coll: tasks.Bcast, Count: 1, Type: tasks.Int64}, asBytes(size)); err != nil {
		return nil, err
	}
	if size[0] < 1 || size[0] > machine.MaxBytes {
		return nil, fmt.Errorf("rank 0 announces a machine of %d bytes; allowed are %d", size[0], machine.MaxBytes)
	}
	if b.comm.Rank() != 0 {
		data = make([]byte, size[0])
	}
	return data, b.alongTree(ctx, tasks.Request{Coll: tasks.Bcast, Count: size[0], Type: tasks.Uint8}, data)
}

// surveyResult is rank 0's knowledge after all pairs have measured.
type surveyResult struct {
	topology *levels.Topology
	links    string  // see [Options.Links]
	sealed   bool    // connections between nodes have TLS
	rows     []int64 // of [pairs.Probe] by level and pair, then a number of its host for each rank
	counts   []int   // pairs by level
	took     time.Duration
}

// file returns the machine's file, or [noMachine] and why.
func (s *surveyResult) file() []byte {
	t := s.topology
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
	m.Links, m.TLS = links, s.sealed && t.Nodes() > 1
	m.CopyByte, m.ReduceByte = pairs.OwnSpeed()
	m.Cores = pairs.Cores(t, s.rows[at:])
	m.Provenance = costs.Provenance{
		Method: choose.Hastily + s.took.Round(time.Millisecond).String(),
		Ranks:  ranksOf(t), Links: s.links, Date: time.Now().UTC().Format(time.RFC3339),
	}
	data, err := m.Format()
	if err != nil {
		return []byte(noMachine + err.Error())
	}
	return data
}

// noMachine begins rank 0's text in place of a machine's file. The reason follows.
const noMachine = "no machine: "
