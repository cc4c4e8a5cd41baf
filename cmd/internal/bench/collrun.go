package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/payload"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// run measures on all ranks of this process. Rank 0 prints.
func (b *Coll) run(ctx context.Context, stdout, stderr io.Writer) error {
	b.Results = Results{Out: stdout, JSON: b.json, wired: b.wire, roots: b.every > 0, sealed: b.Sealed != nil, origin: newProvenance(b.Job, b.regime())}
	notes := notesOut(b.json, stdout, stderr)
	fmt.Fprintf(notes, "# %v; %d CPUs\n", b.Job, runtime.NumCPU())
	chooser := "the built-in rule"
	if b.Table != "" || os.Getenv(env.Table) != "" {
		chooser = "the decision table"
	}
	switch {
	case len(b.given) > 1:
		b.Results.named = true
		fmt.Fprintf(notes, "# plans in turns over the same links; what they leave open is as %s has it\n", chooser)
	case len(b.plans) > 1:
		fmt.Fprintf(notes, "# flat ignores nodes; beside it what %s chooses, in turns over the same links\n", chooser)
	}
	if b.Sealed != nil {
		fmt.Fprintf(notes, "# in turns with the same in a second job: %v\n", b.Sealed)
	}
	if b.alloc {
		fmt.Fprintln(notes, "# buffers are planner.Alloc's")
	}
	if b.Counts != "" {
		fmt.Fprintf(notes, "# counts %s: bytes is the largest block\n", b.Counts)
	}
	if b.every > 0 {
		fmt.Fprintln(notes, "# every root in turn: root min, p50 and max are of the roots' p50; the rest is of all samples")
	}
	if b.Effort.single {
		fmt.Fprintln(notes, "# single calls: each on buffers just written, after two barriers")
	}
	if b.Effort.skew > 0 {
		fmt.Fprintf(notes, "# the last rank computes for %v first, which times include\n", b.Effort.skew)
	}
	fmt.Fprintln(notes, "# times: slowest rank's per call; algbw, busbw at p50: 1 GB is 1e9 bytes")
	if err := b.Results.printHead(); err != nil {
		return err
	}
	if err := kit.RunRanksOf(ctx, b.jobs(), b.plans, b.RunRank); err != nil {
		return err
	}
	b.Results.origin.OthersCPU = kit.Round(b.others, 1e3)
	fmt.Fprint(notes, othersText(b.others))
	return b.Results.printEnd()
}

// regime returns how measured calls follow each other.
func (b *Coll) regime() string {
	if b.Effort.single {
		return costs.Single.String()
	}
	return costs.BackToBack.String()
}

// jobs returns the job, and the sealed one if there is one.
func (b *Coll) jobs() []kit.Job {
	if b.Sealed == nil {
		return []kit.Job{b.Job}
	}
	return []kit.Job{b.Job, b.Sealed}
}

// RunRank measures all requests on one rank; comms are its ends, one for each plan of each job.
func (b *Coll) RunRank(ctx context.Context, comms []*planner.Comm) (err error) {
	m := &collRank{Coll: b, comms: comms}
	if m.own, err = openOwn(ctx, comms); err != nil {
		return err
	}
	defer func() {
		// After a failure these only repeat it.
		if closed := closeOwn(m.own); err == nil {
			err = closed
		}
	}()
	if b.wire {
		if m.stream, err = openWire(ctx, comms[0]); err != nil {
			return err
		}
		defer m.stream.close()
	}
	before := readUsage()
	for _, r := range b.Work {
		if err := m.measure(ctx, r); err != nil {
			return err
		}
	}
	others, err := gatherOthers(ctx, m.own[0], before)
	if comms[0].Rank() == 0 {
		b.others = others
	}
	return err
}

// collRank is bench coll on one rank.
type collRank struct {
	*Coll
	comms  []*planner.Comm // one for each plan of each job
	own    []*planner.Comm // for barriers and sums, one beside each of comms
	stream *wire           // nil without --wire
}

// measure measures one request with all plans, and prints rows on rank 0.
func (m *collRank) measure(ctx context.Context, r tasks.Request) error {
	roots := m.rootsOf(r)
	var streams []*subject
	if m.stream != nil && r.Bytes() > 0 {
		streams = append(streams, newWireSubject(m.comms[0], m.own[0], m.stream, r))
	}
	operations, err := m.prepare(ctx, r, roots)
	if err != nil {
		return err
	}
	effort := m.Effort
	effort.Time /= time.Duration(len(roots))
	// The stream by itself: it goes through the runtime's poller, and that moves this goroutine
	// to another thread. Calls of a few microseconds suffer from a move.
	for _, part := range [][]*subject{streams, operations} {
		if len(part) > 0 {
			if err := measure(ctx, part, effort); err != nil {
				return err
			}
		}
	}
	if m.alloc {
		for _, s := range operations {
			planner.Free(s.comm, s.send) // it does nothing to ordinary buffers
			planner.Free(s.comm, s.recv)
		}
	}
	if m.comms[0].Rank() > 0 {
		return nil
	}
	return m.addRows(streams, operations, len(roots))
}

// prepare returns the subjects of a request: for each plan one from each root.
func (m *collRank) prepare(ctx context.Context, r tasks.Request, roots []levels.Rank) ([]*subject, error) {
	var all []*subject
	for i, c := range m.comms {
		take := payload.Take(payload.Ordinary)
		if m.alloc {
			take = func(n int64) ([]byte, error) { return planner.Alloc[byte](c, int(n)) }
		}
		first, err := newSubject(ctx, c, m.own[i], r, m.rotate && r.Rooted(), take)
		if err != nil {
			return nil, err
		}
		all = append(all, first)
		for _, root := range roots[1:] {
			other, err := first.withRoot(ctx, root)
			if err != nil {
				return nil, err
			}
			all = append(all, other)
		}
	}
	return all, nil
}

// addRows prints a row for the stream, if there is one, and one for each plan.
// operations has as many subjects of each plan as there are roots.
func (m *collRank) addRows(streams, operations []*subject, roots int) error {
	stream := 0.0 // its p50 in µs; 0: there is none
	for _, s := range streams {
		row := newResult(s)
		stream = row.P50
		if stream > 0 {
			row.ToWire = 1
		}
		if err := m.Results.addRow(row); err != nil {
			return err
		}
	}
	var plain []float64 // p50 in µs, by plan
	rows := make([]Result, len(m.comms))
	for i := range m.comms {
		row := newRootsResult(operations[i*roots:][:roots], m.every)
		k := i % len(m.plans)
		row.Asked = m.plans[k]
		if i < len(m.plans) {
			plain = append(plain, row.P50)
		} else {
			row.TLS = m.tls
			if plain[k] > 0 {
				row.ToPlain = kit.Round(row.P50/plain[k], 1e3)
			}
		}
		if stream > 0 {
			row.ToWire = kit.Round(row.P50/stream, 1e3)
		}
		rows[i] = row
	}
	markTies(rows)
	for _, row := range rows {
		if err := m.Results.addRow(row); err != nil {
			return err
		}
	}
	if m.json {
		return nil
	}
	_, err := io.WriteString(m.Results.Out, tieText(rows))
	return err
}
