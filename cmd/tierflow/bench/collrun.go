package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/cmd/tierflow/kit/payload"
	"github.com/tierflow/tierflow/planner"
)

// run measures. Rank 0 prints.
func (b *benchColl) run(ctx context.Context, stdout, stderr io.Writer) error {
	b.results = results{out: stdout, json: b.json, wired: b.wire, roots: b.from == allRoots}
	notes := stdout
	if b.json {
		notes = stderr
	}
	fmt.Fprintf(notes, "# %v; %d CPUs\n", b.Job, runtime.NumCPU())
	chooser := "the built-in rule"
	if b.Table != "" || os.Getenv(planner.TableVariable) != "" {
		chooser = "the decision table"
	}
	switch {
	case len(b.given) > 1:
		b.results.named = true
		fmt.Fprintf(notes, "# plans in turns over the same links; what they leave open is as %s has it\n", chooser)
	case len(b.plans) > 1:
		fmt.Fprintf(notes, "# flat ignores nodes; beside it what %s chooses, in turns over the same links\n", chooser)
	}
	if b.alloc {
		fmt.Fprintln(notes, "# buffers are planner.Alloc's")
	}
	if b.Counts != "" {
		fmt.Fprintf(notes, "# counts %s: bytes is the largest block\n", b.Counts)
	}
	if b.from == allRoots {
		fmt.Fprintln(notes, "# every root in turn: root min, p50 and max are of the roots' p50; the rest is of all samples")
	}
	fmt.Fprintln(notes, "# times: slowest rank's per call; algbw, busbw: GB/s (1e9 bytes/s) at p50")
	if err := b.results.head(); err != nil {
		return err
	}
	if err := kit.RunRanks(ctx, b.Job, b.plans, b.rank); err != nil {
		return err
	}
	return b.results.end()
}

// rank is what one rank does.
func (b *benchColl) rank(ctx context.Context, comms []*planner.Comm) (err error) {
	own, err := openOwn(ctx, comms)
	if err != nil {
		return err
	}
	defer func() {
		// After a failure these only say again what has failed.
		if closed := closeOwn(own); err == nil {
			err = closed
		}
	}()
	var stream *wire
	if b.wire {
		var err error
		if stream, err = openWire(ctx, comms[0]); err != nil {
			return err
		}
		defer stream.close()
	}
	for _, r := range b.work {
		var subjects []*subject
		if stream != nil && r.Bytes() > 0 {
			subjects = append(subjects, newWireSubject(comms[0], own[0], stream, r))
		}
		streams, roots := len(subjects), b.rootsOf(r)
		for i, c := range comms {
			t := payload.Take(payload.Ordinary)
			if b.alloc {
				t = func(n int64) ([]byte, error) { return planner.Alloc[byte](c, int(n)) }
			}
			s, err := newSubject(c, own[i], r, b.rotate && r.Rooted(), t)
			if err != nil {
				return err
			}
			subjects = append(subjects, s)
			for _, root := range roots[1:] {
				other, err := s.from(root)
				if err != nil {
					return err
				}
				subjects = append(subjects, other)
			}
		}
		effort := b.effort
		effort.time /= time.Duration(len(roots))
		// The stream by itself: the runtime's poller, which it goes through, moves this
		// goroutine to another thread, and calls of a few microseconds suffer from that.
		for _, part := range [][]*subject{subjects[:streams], subjects[streams:]} {
			if len(part) > 0 {
				if err := measure(ctx, part, effort); err != nil {
					return err
				}
			}
		}
		if b.alloc {
			for _, s := range subjects {
				planner.Free(s.comm, s.send) // where there is nothing to free it does nothing
				planner.Free(s.comm, s.recv)
			}
		}
		if comms[0].Rank() > 0 {
			continue
		}
		first := 0.0
		for i := 0; i < len(subjects); {
			var row result
			if i < streams {
				row = newResult(subjects[i])
				first = row.P50
				i++
			} else {
				row = newRootsResult(subjects[i:][:len(roots)])
				row.asked = b.plans[(i-streams)/len(roots)]
				i += len(roots)
			}
			if first > 0 {
				row.ToWire = kit.Round(row.P50/first, 1e3)
			}
			if err := b.results.add(row); err != nil {
				return err
			}
		}
	}
	return nil
}
