package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
)

// submachine is the first perNode ranks of the first nodes of a job. It is tuned for as a
// machine of its own.
type submachine struct{ nodes, perNode int }

// on is its topology.
func (m submachine) on(whole *levels.Topology) (*levels.Topology, error) {
	return tune.Machine{Nodes: m.nodes, PerNode: m.perNode}.On(whole)
}

// readMachines returns the machines of --machines, or of --nodes and --ppn; none: the job's ranks
// are the machine.
func (u *Tuning) readMachines(t *levels.Topology) (all []submachine, err error) {
	if u.machines != "" && (u.nodes != "" || u.ppn != "") {
		return nil, kit.Usagef("--machines and --nodes, --ppn exclude each other")
	}
	for _, word := range splitWords(u.machines) {
		nodes, perNode, found := strings.Cut(word, "x")
		m := submachine{}
		var first, second error
		m.nodes, first = strconv.Atoi(nodes)
		m.perNode, second = strconv.Atoi(perNode)
		if !found || first != nil || second != nil {
			return nil, kit.Usagef("--machines: %q; a machine is nodes and ranks a node: 3x2", word)
		}
		all = append(all, m)
	}
	if u.nodes != "" || u.ppn != "" {
		nodes, err := readSpan("nodes", u.nodes, t.Nodes())
		if err != nil {
			return nil, err
		}
		perNode, err := readSpan("ppn", u.ppn, t.Hierarchy(0).Widest(0))
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			for _, p := range perNode {
				if n*p > 1 {
					all = append(all, submachine{n, p})
				}
			}
		}
	}
	for _, m := range all {
		if _, err := t.Pick(m.nodes, m.perNode); err != nil {
			return nil, kit.Usagef("%v", err)
		}
	}
	return all, nil
}

// readSpan reads numbers such as 1:8 or 1,2,4. Without a text it is the most there are.
func readSpan(flag, text string, most int) (all []int, err error) {
	if text == "" {
		return []int{most}, nil
	}
	for _, word := range splitWords(text) {
		from, to, isSpan := strings.Cut(word, ":")
		low, err := strconv.Atoi(from)
		high := low
		if err == nil && isSpan {
			high, err = strconv.Atoi(to)
		}
		if err != nil || low < 1 || high < low || high > most {
			return nil, kit.Usagef("--%s: %q; allowed are numbers 1 to %d and spans of them: 1:4", flag, word, most)
		}
		for n := low; n <= high; n++ {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// eachMachine calls f for each machine to tune for, on its ranks. Others wait meanwhile.
func (u *Tuning) eachMachine(ctx context.Context, r *Rank, all []submachine, f func(ctx context.Context, r *Rank) error) error {
	if len(all) == 0 {
		return f(ctx, r)
	}
	// In the second turn nothing is measured any more: each machine gets the times of plans good
	// on others.
	for range 2 {
		for _, m := range all {
			if err := u.onMachine(ctx, r, m, all, f); err != nil {
				return fmt.Errorf("machine %dx%d: %w", m.nodes, m.perNode, err)
			}
		}
	}
	return nil
}

// learnMachines tunes for all machines together, by method learn.
func (u *Tuning) learnMachines(ctx context.Context, r *Rank, all []submachine, made *table.Table, save func(*table.Table) error) error {
	var machines []tune.Machine
	for _, m := range all {
		around, err := m.machinesAround(all, r.Topology)
		if err != nil {
			return err
		}
		machines = append(machines, tune.Machine{Nodes: m.nodes, PerNode: m.perNode, Around: around})
	}
	var meter tune.PartMeter
	if r.Comm == nil {
		r.parts = tune.NewSimulatedParts(r.Topology, r.machine, u.Registry)
		meter = r.parts
	} else {
		parts := tune.NewRankParts(r.Comm, u.Regime)
		defer parts.Close()
		meter = parts
	}
	for _, m := range all {
		if err := u.describeMachine(made, r, m); err != nil {
			return err
		}
	}
	before := made.Provenance
	_, err := u.search(ctx, r, tune.Learn, u.when, made, save, func(ctx context.Context, s *tune.Search) (*table.Table, error) {
		f := &tune.Fleet{Search: *s, Machines: machines, Alone: u.alone}
		t, err := f.Run(ctx, meter)
		if n := f.Batches(); n > 0 {
			r.together = float64(t.Provenance.Configurations) / float64(n)
		}
		return t, err
	})
	p := &made.Provenance
	p.Seconds, p.Configurations, p.Planned = p.Seconds+before.Seconds, p.Configurations+before.Configurations, p.Planned+before.Planned
	return err
}

// describeMachine notes the machine in the table.
func (u *Tuning) describeMachine(made *table.Table, r *Rank, m submachine) error {
	on, err := m.on(r.Topology)
	if err != nil {
		return err
	}
	sub := *r
	sub.Topology = on
	u.describeOrigin(made, &sub, tune.Learn)
	return nil
}

// machinesAround returns the machines answered for by m and another one in a table of all machines: those
// with as many ranks a node and up to three numbers of nodes on either side, and with as many
// nodes the numbers of ranks.
func (m submachine) machinesAround(all []submachine, t *levels.Topology) (between []*levels.Topology, err error) {
	var found []submachine
	for _, o := range all {
		for n := range 3 {
			part := func(a, b int) int { return min(a, b) + (n+1)*max(a-b, b-a)/4 }
			switch {
			case o.perNode == m.perNode:
				found = append(found, submachine{part(m.nodes, o.nodes), m.perNode})
			case o.nodes == m.nodes:
				found = append(found, submachine{m.nodes, part(m.perNode, o.perNode)})
			}
		}
	}
	slices.SortFunc(found, func(a, b submachine) int { return cmp.Or(a.nodes-b.nodes, a.perNode-b.perNode) })
	for _, s := range slices.Compact(found) {
		if slices.Contains(all, s) {
			continue
		}
		sub, err := s.on(t)
		if err != nil {
			return nil, err
		}
		between = append(between, sub)
	}
	return between, nil
}

// onMachine calls f on the ranks of machine m of all machines to tune for.
func (u *Tuning) onMachine(ctx context.Context, r *Rank, m submachine, all []submachine, f func(ctx context.Context, r *Rank) error) error {
	ranks, err := r.Topology.Pick(m.nodes, m.perNode)
	if err != nil {
		return err
	}
	sub := *r
	if sub.Topology, err = r.Topology.Sub(ranks); err != nil {
		return err
	}
	if sub.around, err = m.machinesAround(all, r.Topology); err != nil {
		return err
	}
	sub.machine = nil // prices would leave out plans good elsewhere, and interpolation needs both
	if r.Comm == nil {
		sub.Meter = tune.NewSimulatedMeter(sub.Topology, r.machine, u.Registry)
		err := f(ctx, &sub)
		r.Spent, r.Reuse = sub.Spent, sub.Reuse
		return err
	}
	if sub.Comm, err = kit.SplitRanks(ctx, r.Comm, ranks); err != nil {
		return err
	}
	if sub.Comm != nil {
		sub.Topology = sub.Comm.Topology()
		if sub.Meter, err = tune.NewMeter(ctx, sub.Comm, u.Regime); err == nil {
			err = f(ctx, &sub)
		}
		r.Spent, r.Reuse = sub.Spent, sub.Reuse
		if closed := sub.Comm.Close(); err == nil {
			err = closed
		}
	}
	interrupted := errors.Is(err, tune.ErrInterrupted)
	if err != nil && !interrupted {
		return err // the others hear of it
	}
	ended, agreed := r.Comm.Any(ctx, interrupted)
	switch {
	case agreed != nil:
		return agreed
	case ended && err == nil:
		return tune.ErrInterrupted
	}
	return err
}
