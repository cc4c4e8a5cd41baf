package draw

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/viz"
)

// runFlags are the flags of trace excluded by --recorder.
var runFlags = []string{"topo", "bytes", "dtype", "reduce-op", "root", "plan", "table", "link", "width"}

// runRecordings is trace --recorder: it reads the files left by ranks. The operands are further
// files.
func (r *tracing) runRecordings(c *cobra.Command, more []string) error {
	for _, name := range runFlags {
		if c.Flags().Changed(name) {
			return kit.Usagef("--%s says how to run a collective; --recorder reads files and runs none", name)
		}
	}
	names, err := expandRanks(append(slices.Clone(r.recorded), more...))
	if err != nil {
		return err
	}
	if !c.Flags().Changed("format") {
		r.format = "text"
	}
	if err := r.checkFormat(); err != nil {
		return err
	}
	if r.last < 0 {
		return kit.Usagef("--last %d: allowed are 0, for all, and more", r.last)
	}
	recs, err := readRecordings(names)
	if err != nil {
		return err
	}
	if r.format == "perfetto" {
		return kit.WriteOutput(c.OutOrStdout(), r.out, viz.Perfetto(recordedEvents(recs)))
	}
	var b bytes.Buffer
	if err := flight.Print(&b, recs, r.last); err != nil {
		return err
	}
	return kit.WriteOutput(c.OutOrStdout(), r.out, b.Bytes())
}

// readRecordings reads files, and sorts them by rank.
func readRecordings(names []string) (recs []*flight.Recording, err error) {
	for _, name := range names {
		data, err := files.Read(name, flight.MaxBytes)
		if err != nil {
			return nil, err
		}
		r, err := flight.ReadRecording(name, data)
		if err != nil {
			return nil, err
		}
		recs = append(recs, r)
	}
	slices.SortStableFunc(recs, func(a, b *flight.Recording) int { return a.Rank - b.Rank })
	return recs, nil
}

// expandRanks puts the files of all ranks in place of a name with %r, as TIERFLOW_RECORDER has
// it, in order of ranks. A name without any is an error.
func expandRanks(names []string) ([]string, error) {
	var all []string
	for _, name := range names {
		before, _, has := strings.Cut(name, "%r")
		if !has {
			all = append(all, name)
			continue
		}
		quoted := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
		found, err := filepath.Glob(strings.ReplaceAll(quoted, "%r", "*"))
		if err != nil {
			return nil, kit.Usagef("--recorder %s: %w", name, err)
		}
		ofRanks := map[int]string{}
		for _, file := range found {
			text := file[len(before):]
			digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
			if rank, err := strconv.Atoi(digits); err == nil && strings.ReplaceAll(name, "%r", strconv.Itoa(rank)) == file {
				ofRanks[rank] = file
			}
		}
		if len(ofRanks) == 0 {
			return nil, fmt.Errorf("--recorder %s: there is no such file of any rank, %%r being its number", name)
		}
		for _, rank := range slices.Sorted(maps.Keys(ofRanks)) {
			all = append(all, ofRanks[rank])
		}
	}
	return all, nil
}

// recorded describes one event of a recording, or one call.
type recorded struct {
	name, kind string
	level      byte
	bytes      int64
}

// recordedSource describes events and calls. A step is an index into it.
type recordedSource []recorded

var _ trace.Source = recordedSource(nil)

// Describe gives calls the level c and messages the level m.
func (s recordedSource) Describe(step int32) (task, label, kind string, level byte, bytes int64) {
	e := s[step]
	return e.name, e.name, e.kind, e.level, e.bytes
}

// recordedEvents returns calls and messages as slices of a trace. Time counts from the
// first of them.
func recordedEvents(recs []*flight.Recording) []trace.Event {
	var events []trace.Event
	var source recordedSource
	add := func(r *flight.Recording, run uint32, begin, end time.Duration, d recorded) {
		events = append(events, trace.Event{
			Rank: levels.Rank(r.Rank), Run: run, Step: int32(len(source)),
			Begin: r.Start.Add(begin).UnixNano(), End: r.Start.Add(max(begin, end)).UnixNano(),
		})
		source = append(source, d)
	}
	for _, r := range recs {
		for _, c := range r.Calls {
			end, name := c.Ended, c.Request
			if end == 0 {
				end, name = r.Seen, name+" (not ended)"
			}
			add(r, c.Seq, c.Begun, end, recorded{name, "call", 'c', 0})
		}
		for _, e := range r.Events {
			if e.Kind == flight.Sent || e.Kind == flight.Received {
				add(r, e.Seq, time.Duration(e.Time), time.Duration(e.Time), recorded{
					fmt.Sprintf("%v %d, edge %d", e.Kind, e.Peer, e.Edge), e.Kind.String(), 'm', e.Bytes,
				})
			}
		}
	}
	slices.SortStableFunc(events, func(a, b trace.Event) int { return cmp.Compare(a.Begin, b.Begin) })
	for i := len(events) - 1; i >= 0; i-- { // the first, as the origin of time, last
		events[i].Source = source
		events[i].End -= events[0].Begin
		events[i].Begin -= events[0].Begin
	}
	return events
}
