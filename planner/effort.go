package planner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/internal/cache"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// Bounds of a trial of plans.
const (
	trialPlans  = 5
	trialCalls  = 20   // of a plan
	trialSure   = 3    // calls of a plan before it may be dropped as slow
	trialSlow   = 1.5  // times the fastest, for such a plan
	trialMargin = 1.03 // times the fastest, for the expected best plan to stay
)

// trialTime bounds a trial of plans. Tests change it.
var trialTime = 200 * time.Millisecond

// tryPlans runs a request by several plans in turns, on memory of its own, and returns the time of
// each. All ranks agree after each call on the slowest one's time, so all stop together.
func (c *Comm) tryPlans(ctx context.Context, r tasks.Request, plans []tasks.Plan) (*choose.Measured, error) {
	sizes := [2]int64{}
	sizes[0], sizes[1] = r.Buffers(c.comm.Rank(), c.Size())
	send, recv := make([]byte, sizes[0]), make([]byte, sizes[1])
	cols := make([]*Collective, len(plans))
	for i, p := range plans {
		var err error
		if cols[i], err = c.prepareBy(&choose.Decision{Plan: p}, r, trialCall, send, recv); err != nil {
			return nil, err
		}
	}
	agreed := []int64{0, 0} // the last call, and all of the trial, ns: the slowest rank's
	meet, err := c.treeCollective(tasks.Request{Coll: tasks.Allreduce, Count: 2, Type: tasks.Int64, Op: tasks.Max, InPlace: true}, asBytes(agreed))
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := meet.Do(ctx); err != nil {
		return nil, err
	}
	t := newTurns(len(plans))
	for i := t.next(); i >= 0; i = t.next() {
		start := time.Now()
		if err := cols[i].Run(ctx); err != nil {
			return nil, err
		}
		agreed[0], agreed[1] = int64(time.Since(start)), int64(time.Since(begun))
		if err := meet.Do(ctx); err != nil {
			return nil, err
		}
		t.add(i, agreed[0], agreed[1])
	}
	return t.result(plans), nil
}

// turns chooses the plan to try next, and keeps the times. The first call of a plan connects
// ranks, so it counts only if there is no other.
type turns struct {
	first []int64   // by plan: time of its first call, ns; 0: there was none
	times [][]int64 // by plan: of its other calls
	at    int       // the next plan
	spent int64     // of all, ns
}

func newTurns(plans int) *turns {
	return &turns{first: make([]int64, plans), times: make([][]int64, plans)}
}

// next returns the plan to try next; -1: it is enough.
func (t *turns) next() int {
	if t.spent >= int64(trialTime) {
		return -1
	}
	for range t.first {
		i := t.at
		t.at = (t.at + 1) % len(t.first)
		if len(t.times[i]) < trialCalls && !t.isSlow(i) {
			return i
		}
	}
	return -1
}

// isSlow reports whether enough trials show a plan not to be the fastest.
func (t *turns) isSlow(i int) bool {
	if len(t.times[i]) < trialSure {
		return false
	}
	for k := range t.times {
		if len(t.times[k]) >= trialSure && float64(median(t.times[i])) > trialSlow*float64(median(t.times[k])) {
			return true
		}
	}
	return false
}

// add keeps the time of a plan's call, and of the whole trial so far, ns.
func (t *turns) add(i int, ns, spent int64) {
	t.spent = spent
	if t.first[i] == 0 {
		t.first[i] = max(ns, 1)
		return
	}
	t.times[i] = append(t.times[i], max(ns, 1))
}

// result sorts the plans by their times and leaves out untried ones. A first call
// counts as long as there is no other. The first plan leads unless another one is clearly faster.
func (t *turns) result(plans []tasks.Plan) *choose.Measured {
	m := &choose.Measured{}
	for i, p := range plans {
		switch n := len(t.times[i]); {
		case n > 0:
			m.Trials = append(m.Trials, choose.Trial{Plan: p, NS: float64(median(t.times[i])), Calls: n})
		case t.first[i] > 0:
			m.Trials = append(m.Trials, choose.Trial{Plan: p, NS: float64(t.first[i]), Calls: 1})
		}
	}
	own := m.Trials[0]
	slices.SortStableFunc(m.Trials, func(a, b choose.Trial) int { return cmp.Compare(a.NS, b.NS) })
	if best := m.Trials[0]; !best.Plan.Equal(own.Plan) && own.NS <= trialMargin*best.NS {
		m.Trials = slices.DeleteFunc(m.Trials, func(o choose.Trial) bool { return o.Plan.Equal(own.Plan) })
		m.Trials = slices.Insert(m.Trials, 0, own)
	}
	return m
}

// median returns the middle one of some times, the lower one of two.
func median(all []int64) int64 {
	all = slices.Sorted(slices.Values(all))
	return all[(len(all)-1)/2]
}

// remember adds the measurement to the kept table for later jobs of as many ranks on such hosts. Rank 0 of
// all ranks does. A failure to write is no error.
func (p *policy) remember(w *world, b *base, r tasks.Request, m *choose.Measured) {
	if b.comm.Rank() != 0 || p.tableFile == "" || !p.remembers || b.topology.Size() != w.Size() || r.Differ() {
		return
	}
	w.tables.Lock()
	defer w.tables.Unlock()
	t, err := choose.LoadTable(p.tableFile, b.registry)
	if err != nil {
		t = &table.Table{Version: table.Version, Provenance: table.Provenance{Method: table.Tried, Links: p.common.Links}}
	}
	t.Provenance.Date = time.Now().UTC().Format(time.RFC3339)
	if on := b.topology.String(); !slices.Contains(t.Provenance.Machines, on) {
		t.Provenance.Machines = append(t.Provenance.Machines, on)
	}
	for rank := range levels.Rank(b.topology.Size()) {
		if name := b.topology.NodeName(rank); !slices.Contains(t.Provenance.Hosts, name) {
			t.Provenance.Hosts = append(t.Provenance.Hosts, name)
		}
	}
	e := table.PointOf(r, b.topology, p.common.Links)
	e.Tried = !t.Knows(&e)
	for _, o := range m.Trials {
		e.Candidates = append(e.Candidates, table.Candidate{Plan: table.Canonical(o.Plan, r.Bytes()).String(), NS: o.NS, From: table.FromMeasured})
	}
	// The first one holds for later jobs too.
	e.Candidates[0].NS = min(e.Candidates[0].NS, slices.MinFunc(m.Trials, func(a, b choose.Trial) int { return cmp.Compare(a.NS, b.NS) }).NS)
	t.Replace(e)
	t.Sort()
	_ = p.keepTable(t)
}

// keepForLater is raw.KeepTable.
func (c *Comm) keepForLater(t *table.Table) error {
	if err := c.checkMade(); err != nil {
		return err
	}
	if c.tableFile == "" {
		return fmt.Errorf("rank %d keeps no table: only rank 0 of processes does, if there is a cache folder", c.Rank())
	}
	return c.keepTable(t)
}

// keepTable writes a table to the file for jobs of this size and kind of hosts.
func (p *policy) keepTable(t *table.Table) error {
	data, err := t.Encode()
	if err != nil {
		return err
	}
	return cache.Write(p.tableFile, data)
}

// ownTableFile is raw.TableFile.
func (c *Comm) ownTableFile() string {
	c.mustBeMade()
	return c.tableFile
}
