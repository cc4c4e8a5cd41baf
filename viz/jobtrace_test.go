package viz_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
	"github.com/tierflow/tierflow/viz"
)

// played is a simulated job: its ranks keep the times of its calls.
type played struct {
	topology *levels.Topology
	programs []*submodules.Program
	bounds   []*trace.Bound
	rings    []*trace.Ring
	enter    func(rank, call int) int64                              // ns after the call could begin
	takes    func(rank int, kind string, bytes int64) int64          // of a step
	travels  func(from, to levels.Rank, bytes int64, call int) int64 // of a message
	now      int64
}

// play makes a job of an allreduce.
func play(t *testing.T, topo, plan string, count int64) *played {
	t.Helper()
	on := tasktest.Topology(t, topo)
	p := tasktest.Plan(t, plan)
	request := tasks.Request{Coll: tasks.Allreduce, Count: count, Type: tasks.Float32, Op: tasks.Sum}
	j := &played{
		topology: on, enter: func(int, int) int64 { return 0 },
		takes:   func(int, string, int64) int64 { return 1_000 },
		travels: func(levels.Rank, levels.Rank, int64, int) int64 { return 5_000 },
	}
	var members []levels.Rank
	for r := range levels.Rank(on.Size()) {
		members = append(members, r)
	}
	for r := range levels.Rank(on.Size()) {
		g, err := tasks.Expand(request, on, p, r)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := submodules.Compile(g, on.Size(), all.Submodules())
		if err != nil {
			t.Fatal(err)
		}
		j.programs = append(j.programs, prog)
		j.bounds = append(j.bounds, &trace.Bound{Rank: r, Members: members, Request: request.String(), Plan: plan, Bytes: 4 * count, Passes: 1, Whole: prog})
		j.rings = append(j.rings, trace.NewRing(1, 0, 0))
	}
	return j
}

// run plays a call.
func (j *played) run(call int) {
	type key struct {
		from, to levels.Rank
		edge     int32
	}
	sent := map[key]int64{}
	n := len(j.programs)
	entered, numbers := make([]int64, n), make([]uint32, n)
	ends, done := make([]map[int32]int64, n), 0
	left := 0
	for r, p := range j.programs {
		entered[r] = j.now + j.enter(r, call)
		numbers[r] = j.rings[r].Begin(j.bounds[r], uint32(call), entered[r])
		ends[r] = map[int32]int64{}
		left += p.Len()
	}
	last := slices.Clone(entered)
	for done < left {
		before := done
		for r, p := range j.programs {
			for _, id := range p.Order() {
				step := int32(id)
				if _, has := ends[r][step]; has {
					continue
				}
				begin, ready := entered[r], true
				for _, pred := range p.Pred(id) {
					end, has := ends[r][int32(pred)]
					begin, ready = max(begin, end), ready && has
				}
				if !ready {
					continue
				}
				peer, edge, outgoing := p.Link(step)
				_, _, kind, _, bytes := p.Describe(step)
				end := begin + j.takes(r, kind, bytes)
				switch {
				case peer >= 0 && outgoing:
					sent[key{levels.Rank(r), peer, edge}] = begin
				case peer >= 0:
					from, has := sent[key{peer, levels.Rank(r), edge}]
					if !has {
						continue
					}
					end = max(begin, from+j.travels(peer, levels.Rank(r), bytes, call))
				}
				ends[r][step] = end
				j.rings[r].Step(numbers[r], 0, step, begin, end)
				last[r] = max(last[r], end)
				done++
			}
		}
		if done == before {
			panic("the programs wait for each other")
		}
	}
	for r := range j.programs {
		j.rings[r].End(numbers[r], last[r])
	}
	j.now = slices.Max(last) + 10_000
}

// files returns what the ranks have kept; the clock of a node is ahead of the truth.
func (j *played) files(ahead map[string]int64) []*trace.File {
	var nodes []string
	for r := range j.programs {
		nodes = append(nodes, j.topology.NodeName(levels.Rank(r)))
	}
	var files []*trace.File
	for r, ring := range j.rings {
		f := ring.File(1_000_000 + ahead[nodes[r]])
		f.Job, f.Rank, f.Nodes, f.Clock = "4f2c91aa", r, nodes, nodes[r]
		if nodes[r] != nodes[0] && slices.Index(nodes, nodes[r]) == r {
			// Two fixes, each wrong by less than it says.
			off := ahead[nodes[0]] - ahead[nodes[r]]
			f.Ahead = clock.Map{Fixes: []clock.Fix{
				{At: 1_000_000 + ahead[nodes[r]], Ahead: off + 40, Error: 2000},
				{At: 1_000_000 + ahead[nodes[r]] + j.now, Ahead: off - 40, Error: 2000},
			}}
		}
		files = append(files, f)
	}
	return files
}

// merged is the trace of the job.
func (j *played) merged(t *testing.T, ahead map[string]int64) *viz.JobTrace {
	t.Helper()
	m, err := viz.MergeTraces(j.files(ahead))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Clocks that are seconds apart give one trace, and shares of causes are those of one clock.
func TestMergeAligns(t *testing.T) {
	j := play(t, "2x2", "shape=han,fs=64KiB,w=4,i=adapt,s=sm", 32768)
	for call := range 5 {
		j.run(call)
	}
	plain, skewed := j.merged(t, nil), j.merged(t, map[string]int64{"node0": -3e9, "node1": 4e9})
	if len(plain.Calls) != 5 || len(skewed.Calls) != 5 || plain.Wrong+skewed.Wrong > 0 {
		t.Fatalf("%d and %d calls, want 5; %d and %d wrong", len(plain.Calls), len(skewed.Calls), plain.Wrong, skewed.Wrong)
	}
	for i := range plain.Calls {
		a, b := &plain.Calls[i], &skewed.Calls[i]
		if d := a.Length() - b.Length(); d.Abs() > 100 {
			t.Errorf("call %d takes %v or %v", i, a.Length(), b.Length())
		}
	}
	want := "job 4f2c91aa: 5 calls on 4 ranks, one of 1\nclocks: node0 ±0s, node1 ±2µs"
	if got := skewed.Summary(); !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Some calls are kept, in the order of time.
func TestSomeCalls(t *testing.T) {
	lengths := []int64{30, 10, 50, 20, 40}
	made := func() *viz.JobTrace {
		j := &viz.JobTrace{}
		for i, length := range lengths {
			j.Calls = append(j.Calls, viz.TracedCall{Seq: uint32(i), Begins: []int64{int64(100 * i)}, Ends: []int64{int64(100*i) + length}})
		}
		return j
	}
	kept := func(pick func(*viz.JobTrace)) (all []uint32) {
		j := made()
		pick(j)
		for _, c := range j.Calls {
			all = append(all, c.Seq)
		}
		return all
	}
	for _, test := range []struct {
		name string
		pick func(*viz.JobTrace)
		want []uint32
	}{
		{"two longest", func(j *viz.JobTrace) { j.Longest(2) }, []uint32{2, 4}},
		{"more than there are", func(j *viz.JobTrace) { j.Longest(9) }, []uint32{0, 1, 2, 3, 4}},
		{"a range", func(j *viz.JobTrace) { j.Between(1, 3) }, []uint32{1, 2}},
		{"a range beyond the end", func(j *viz.JobTrace) { j.Between(4, 9) }, []uint32{4}},
		{"nothing there", func(j *viz.JobTrace) { j.Between(7, 9) }, nil},
	} {
		if got := kept(test.pick); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	j := play(t, "2x2", "shape=flat,fs=64KiB,w=4,i=adapt,s=adapt", 16)
	j.run(0)
	if _, err := viz.MergeTraces(nil); err == nil {
		t.Error("no files, no error")
	}
	files := j.files(nil)
	if _, err := viz.MergeTraces(append(files, files[1])); err == nil || !strings.Contains(err.Error(), "two files are of rank 1") {
		t.Error(err)
	}
	if _, err := viz.MergeTraces(files[1:]); err == nil || !strings.Contains(err.Error(), "rank 0 is missing") {
		t.Error(err)
	}
	if m, err := viz.MergeTraces(files[:3]); err != nil || len(m.Calls) != 0 || m.Partly != 1 || !slices.Equal(m.Absent, []int{3}) {
		t.Errorf("%+v, %v; want a call that is there in part", m, err)
	}
	files[2].Ahead = clock.Map{}
	m, err := viz.MergeTraces(files)
	if err != nil || len(m.Calls) != 0 || !strings.Contains(m.Summary(), "node1 never compared") {
		t.Errorf("%v, %s", err, m.Summary())
	}
	files[3].Job = "other"
	if _, err := viz.MergeTraces(files); err == nil || !strings.Contains(err.Error(), "job other") {
		t.Error(err)
	}
}

// A fix that is wrong shows as messages that come before they are sent.
func TestMergeSeesWrongClocks(t *testing.T) {
	j := play(t, "2x1", "shape=flat,fs=64KiB,w=4,i=adapt,s=adapt", 16)
	j.run(0)
	files := j.files(nil)
	for i := range files[1].Ahead.Fixes {
		files[1].Ahead.Fixes[i].Ahead -= 1e6
	}
	if m, err := viz.MergeTraces(files); err != nil || m.Wrong == 0 || !strings.Contains(m.Summary(), "a clock has stepped") {
		t.Errorf("%v: %s", err, m.Summary())
	}
}

// of returns the part of a cause, ns, and its first place.
func of(a viz.Account, cause viz.Cause) (int64, string) {
	n, most := a.Of(cause)
	return n, most.Where
}

// Injected causes are found, with their share.
func TestAttribution(t *testing.T) {
	const calls = 20
	for _, topo := range []string{"2x2", "4x2"} {
		for _, plan := range []string{"shape=han,fs=64KiB,w=4,i=adapt,s=sm", "shape=flat,fs=64KiB,w=4,i=adapt,s=adapt", "shape=han,fs=8KiB,w=4,i=nbc,s=sm"} {
			base := func() *played {
				j := play(t, topo, plan, 8192)
				j.travels = func(from, to levels.Rank, bytes int64, _ int) int64 {
					if j.topology.Node(from) == j.topology.Node(to) {
						return 2_000
					}
					return 10_000 + bytes
				}
				return j
			}
			account := func(j *played) viz.Account {
				for call := range calls {
					j.run(call)
				}
				m := j.merged(t, map[string]int64{"node1": 5e9})
				all := viz.Accounts(m)
				if len(all) != 1 || all[0].Calls != calls {
					t.Fatalf("%+v", all)
				}
				a := all[0]
				sum, length := int64(0), int64(0)
				for _, b := range a.Blames {
					sum += b.NS
				}
				for i := range m.Calls {
					length += int64(m.Calls[i].Length())
				}
				shares := 0
				for _, p := range a.Percents() {
					shares += p
				}
				if sum != a.NS || sum != length || shares != 100 {
					t.Errorf("%s %s: causes take %d ns of %d, %d together, %d%%", topo, plan, sum, a.NS, length, shares)
				}
				return a
			}
			healthy := account(base())

			j := base()
			const late = 3_000_000
			j.enter = func(rank, _ int) int64 { return map[int]int64{3: late}[rank] }
			a := account(j)
			if n, where := of(a, viz.Late); where != "r3" || n < calls*late*9/10 || n > calls*late*11/10 {
				t.Errorf("%s %s: late %d ns at %s, want 3 ms a call at r3: %v", topo, plan, n, where, &a)
			}

			j = base()
			quick := j.travels
			j.travels = func(from, to levels.Rank, bytes int64, call int) int64 {
				n := quick(from, to, bytes, call)
				if (j.topology.Node(from) == 1) != (j.topology.Node(to) == 1) {
					n *= 3
				}
				return n
			}
			a = account(j)
			before, _ := of(healthy, viz.Wire)
			after, where := of(a, viz.Wire)
			if surplus := a.NS - healthy.NS; !strings.Contains(where, "node1") || after-before < surplus*9/10 || after-before > surplus*11/10 {
				t.Errorf("%s %s: the wire takes %d ns more at %s of a surplus of %d: %v", topo, plan, after-before, where, surplus, &a)
			}

			j = base()
			j.takes = func(rank int, kind string, _ int64) int64 {
				if kind == "reduce" && rank == 1 {
					return 700_000
				}
				return 1_000
			}
			a = account(j)
			before, _ = of(healthy, viz.Reduce)
			after, where = of(a, viz.Reduce)
			if surplus := a.NS - healthy.NS; surplus > 0 && (where != "r1" || after-before < surplus*9/10 || after-before > surplus*11/10) {
				t.Errorf("%s %s: reducing takes %d ns more at %s of a surplus of %d: %v", topo, plan, after-before, where, surplus, &a)
			}
		}
	}
}

func ExampleAccount() {
	a := viz.Account{Request: "allreduce 1048576 f32 sum", Calls: 212, NS: 61_200_000, Blames: []viz.Blame{
		{Cause: viz.Wire, Where: "a>b", NS: 25_000_000},
		{Cause: viz.Late, Where: "r5", NS: 20_000_000},
		{Cause: viz.Wire, Where: "b>a", NS: 10_000_000},
		{Cause: viz.Reduce, Where: "r1", NS: 6_200_000},
	}}
	fmt.Println(&a)
	// Output:
	// allreduce 1048576 f32 sum, 212 calls, 61.2ms: wire 57% (a>b 40%), late 33% (r5 32%), reduce 10% (r1)
}

// chrome is an event of the Chrome trace event format, as strictly as ui.perfetto.dev can read it.
type chrome struct {
	Name string          `json:"name"`
	Cat  string          `json:"cat"`
	Ph   string          `json:"ph"`
	ID   string          `json:"id"`
	BP   string          `json:"bp"`
	Ts   json.Number     `json:"ts"`
	Dur  json.Number     `json:"dur"`
	Pid  *int            `json:"pid"`
	Tid  *int            `json:"tid"`
	Args json.RawMessage `json:"args"`
}

type interval struct{ begin, end float64 }

// checkSchema complains of what a reader of the format might not understand: unknown or
// missing fields, slices of a thread that overlap without nesting, arrows without both ends or with an end in
// no slice, processes and threads without names.
func checkSchema(t *testing.T, text []byte) (counts map[string]int) {
	t.Helper()
	var doc struct {
		Unit   string   `json:"displayTimeUnit"`
		Events []chrome `json:"traceEvents"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil || d.More() || doc.Unit != "ns" {
		t.Fatalf("%v, unit %q", err, doc.Unit)
	}
	type place struct{ pid, tid int }
	named, processes := map[place]bool{}, map[int]bool{}
	slicesOf := map[place][]interval{}
	begins, ends := map[string]chrome{}, map[string]chrome{}
	counts = map[string]int{}
	number := func(n json.Number) float64 {
		v, err := n.Float64()
		if err != nil || v < 0 {
			t.Fatalf("time %q", n)
		}
		return v
	}
	for i, e := range doc.Events {
		counts[e.Ph]++
		if e.Name == "" || e.Pid == nil || e.Tid == nil || len(e.Args) == 0 {
			t.Fatalf("event %d lacks a name, process, thread or arguments: %+v", i, e)
		}
		at := place{*e.Pid, *e.Tid}
		switch e.Ph {
		case "M":
			switch e.Name {
			case "process_name":
				processes[at.pid] = true
			case "thread_name":
				named[at] = true
			case "process_sort_index", "thread_sort_index":
			default:
				t.Errorf("metadata %q", e.Name)
			}
		case "X":
			begin := number(e.Ts)
			slicesOf[at] = append(slicesOf[at], interval{begin, begin + number(e.Dur)})
		case "s", "f":
			all := begins
			if e.Ph == "f" {
				all = ends
				if e.BP != "e" {
					t.Errorf("arrow %s ends with bp %q", e.ID, e.BP)
				}
			}
			if _, twice := all[e.ID]; twice || e.ID == "" || e.Cat == "" {
				t.Fatalf("arrow %q, category %q, twice: %v", e.ID, e.Cat, twice)
			}
			all[e.ID] = e
		default:
			t.Fatalf("event %d: phase %q", i, e.Ph)
		}
	}
	for at, all := range slicesOf {
		if !processes[at.pid] || !named[at] && at.pid < levels.MaxRanks {
			t.Errorf("process %d, thread %d has no name", at.pid, at.tid)
		}
		slices.SortFunc(all, func(a, b interval) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end)) })
		var open []interval
		for _, s := range all {
			for len(open) > 0 && open[len(open)-1].end <= s.begin+1e-6 {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && open[len(open)-1].end < s.end-1e-6 {
				t.Fatalf("process %d, thread %d: %v overlaps %v", at.pid, at.tid, s, open[len(open)-1])
			}
			open = append(open, s)
		}
		slicesOf[at] = all
	}
	if len(begins) != len(ends) {
		t.Errorf("%d arrows begin, %d end", len(begins), len(ends))
	}
	for id, b := range begins {
		e, ok := ends[id]
		if !ok || e.Cat != b.Cat || e.Name != b.Name || number(e.Ts) < number(b.Ts) {
			t.Fatalf("arrow %s: from %+v to %+v", id, b, e)
		}
		for _, end := range []chrome{b, e} {
			at := number(end.Ts)
			if !slices.ContainsFunc(slicesOf[place{*end.Pid, *end.Tid}], func(s interval) bool { return s.begin <= at+1e-6 && at <= s.end+1e-6 }) {
				t.Fatalf("arrow %s: no slice at %v", id, end)
			}
		}
	}
	return counts
}

func TestJobPerfetto(t *testing.T) {
	j := play(t, "2x2", "shape=han,fs=8KiB,w=4,i=adapt,s=sm", 16384)
	for call := range 4 {
		j.run(call)
	}
	m := j.merged(t, map[string]int64{"node1": 1e9})
	counts := checkSchema(t, viz.JobPerfetto(m, nil))
	messages := 0
	for _, p := range j.programs {
		for id := range int32(p.Len()) {
			if peer, _, outgoing := p.Link(id); peer >= 0 && outgoing {
				messages++
			}
		}
	}
	// Clocks that are not exact may cost arrows: of messages that come before they are sent.
	if least := 4*messages - m.Early - m.Wrong; counts["s"] < least || counts["s"] > 4*messages {
		t.Errorf("%d arrows of %d messages, %d of which came early", counts["s"], 4*messages, m.Early)
	}
	checkSchema(t, viz.JobPerfetto(&viz.JobTrace{}, nil))
}

// Sixteen ranks and a hundred calls are read, merged and written; the log says how long that
// takes.
func TestJobPerfettoOfManyRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("a large trace")
	}
	j := play(t, "4x4", "shape=han,fs=16KiB,w=4,i=adapt,s=sm", 32768)
	rng := rand.New(rand.NewPCG(1, 2))
	j.enter = func(int, int) int64 { return rng.Int64N(20_000) }
	for call := range 100 {
		j.run(call)
	}
	var texts [][]byte
	for _, f := range j.files(map[string]int64{"node1": 1e9, "node2": -2e9}) {
		var b bytes.Buffer
		if err := f.Write(&b); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, b.Bytes())
	}
	began := time.Now()
	var files []*trace.File
	for i, text := range texts {
		f, err := trace.ReadFile(fmt.Sprint(i), text)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	m, err := viz.MergeTraces(files)
	if err != nil || len(m.Calls) != 100 {
		t.Fatal(err)
	}
	text := viz.JobPerfetto(m, nil)
	accounts := viz.JobText(m)
	took := time.Since(began)
	counts := checkSchema(t, text)
	t.Logf("%d slices, %d arrows, %d bytes in %v\n%s", counts["X"], counts["s"], len(text), took, accounts)
	if threads := counts["M"]; threads > 16*2*8+8 {
		t.Errorf("%d names of processes and threads: too many tracks", threads)
	}
}
