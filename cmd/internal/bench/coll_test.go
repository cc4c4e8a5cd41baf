package bench

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/cmd/internal/kit/payload"
	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// quick measures little.
const quick = "--iters 2 --link none"

// rowsOf runs the command, which must print JSON, and returns its rows.
func rowsOf(t *testing.T, args ...string) []Result {
	t.Helper()
	return kittest.Decode[printed[Result]](t, tierflow.Run(t, args...).Out).Results
}

// rowLines returns the lines of an output that are no notes.
func rowLines(out string) []string {
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
}

// onRanks calls f on each of n ranks, with the subject of a request.
func onRanks(t *testing.T, n string, r tasks.Request, rotate bool, f func(ctx context.Context, c *planner.Comm, s *subject) error) {
	t.Helper()
	err := planner.Run(t.Context(), n, nil, func(ctx context.Context, c *planner.Comm) error {
		s, err := newSubject(ctx, c, c, r, rotate, payload.Ordinary)
		if err != nil {
			return err
		}
		return f(ctx, c, s)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Simulated times need no ranks and repeat exactly.
func TestSimulated(t *testing.T) {
	line := strings.Fields("bench coll bcast,barrier --topo 64x12 --bytes 1KiB,1MiB --simulate assumed")
	text := tierflow.Succeeds(t, line...)
	if !strings.HasPrefix(text, "# 64x12: 768 ranks, simulated on a machine, assumed\n# times are simulated") || strings.Count(text, "\n") != 3+6 {
		t.Errorf("%s", text)
	}
	if again := tierflow.Succeeds(t, line...); again != text {
		t.Errorf("first\n%s\nthen\n%s", text, again)
	}
	all := rowsOf(t, append(line, "--json", "--plan", "bcast:shape=flat")...)
	if len(all) != 3 || all[1].Shape != "flat" || all[1].P50 <= all[0].P50 || all[1].Simulated == "" || all[1].Iters != 1 {
		t.Errorf("%+v", all)
	}
	for _, test := range []struct{ args, want string }{
		{"--root all", "--root all: 768 ranks; at most 256, as with all/3"},
		{"--root all/0", "all/N with N from 1 to 768"},
		{"--iters 3", "--iters: a simulation"},
		{"--link none", "--link: the machine of --simulate"},
		{"--plan i=sm", "sm works between ranks that share memory"},
	} {
		if s := tierflow.Run(t, append(line, strings.Fields(test.args)...)...); s.Status == 0 || !strings.Contains(s.Errors, test.want) {
			t.Errorf("%s: %+v, want %q", test.args, s, test.want)
		}
	}
}

// The schema that other programs read: exactly these fields.
func TestBenchJSON(t *testing.T) {
	s := tierflow.Run(t, strings.Fields("bench coll bcast,allreduce,barrier --topo 2x2 --bytes 4,4000 --json --iters 3 --link i=10gbit,1us")...)
	if s.Status != 0 || !strings.Contains(s.Errors, "emulated: i=10gbit,1us") {
		t.Fatalf("status %d, notes %q; want to be told of the emulation", s.Status, s.Errors)
	}
	type row struct {
		Collective string  `json:"collective"`
		Shape      string  `json:"shape"`
		Plan       string  `json:"plan"`
		Bytes      int64   `json:"bytes"`
		Ranks      int     `json:"ranks"`
		Nodes      int     `json:"nodes"`
		Iters      int     `json:"iters"`
		Min        float64 `json:"min_us"`
		P50        float64 `json:"p50_us"`
		P99        float64 `json:"p99_us"`
		Mean       float64 `json:"mean_us"`
		Half       float64 `json:"half_us"`
		Tie        bool    `json:"tie"`
		Algorithm  float64 `json:"algbw_gbytes_per_s"`
		Bus        float64 `json:"busbw_gbytes_per_s"`
		OldAlg     float64 `json:"algbw_gbps"`
		OldBus     float64 `json:"busbw_gbps"`
		Wrong      int64   `json:"wrong"`
		Asked      string  `json:"asked"`
	}
	document := kittest.Decode[printed[row]](t, s.Out)
	if p := document.Provenance; p.Topology != "2x2" || !strings.Contains(p.Links, "10gbit") || p.CPUs == 0 || p.Regime != "back-to-back" || p.Version == "" || p.Date == "" {
		t.Errorf("provenance %+v", p)
	}
	all := document.Results
	if len(all) != 2*(2+2+1) {
		t.Fatalf("%d rows, want flat and the rule's of five operations", len(all))
	}
	for i, r := range all {
		if r.Ranks != 4 || r.Nodes != 2 || r.Iters != 3 || r.Wrong != 0 || r.Min <= 0 || r.Min > r.P50 || r.P50 > r.P99 {
			t.Errorf("row %d: %+v", i, r)
		}
		want := "flat"
		switch { // what the built-in rule takes
		case i%2 == 0:
		case r.Collective == "bcast":
			want = "han"
		default:
			want = "ar"
		}
		if r.Shape != want || !strings.HasPrefix(r.Plan, "shape="+want) || (r.Asked == "shape=flat") != (want == "flat") {
			t.Errorf("row %d: shape %s, plan %s; want %s", i, r.Shape, r.Plan, want)
		}
		if r.OldAlg != r.Algorithm || r.OldBus != r.Bus || r.Bytes > 0 && r.Algorithm <= 0 {
			t.Errorf("row %d: algbw %v, %v by its old name; busbw %v, %v", i, r.Algorithm, r.OldAlg, r.Bus, r.OldBus)
		}
		if r.Collective == "allreduce" && r.Bytes > 4 && (r.Bus < 1.4*r.Algorithm || r.Bus > 1.6*r.Algorithm) {
			t.Errorf("row %d: busbw %v, algbw %v; want a factor of 2·3/4", i, r.Bus, r.Algorithm)
		}
	}
	for _, field := range strings.Fields("collective shape plan bytes ranks nodes iters min_us p50_us p99_us mean_us half_us algbw_gbytes_per_s busbw_gbytes_per_s algbw_gbps busbw_gbps wrong") {
		if strings.Count(s.Out, `"`+field+`":`) != len(all) {
			t.Errorf("field %s is missing", field)
		}
	}
}

// Every type and operation comes out as expected, on a machine where the ranks
// are no power of two.
func TestBenchChecksAllTypes(t *testing.T) {
	types := tasks.Datatypes()
	for _, value := range tasks.Datatypes() {
		types = append(types, tasks.LocOf(value))
	}
	for _, dtype := range types {
		for _, op := range tasks.Ops() {
			if err := payload.CheckType(dtype); err != nil || !dtype.Valid() || kernel.Impl(op, dtype) == "" {
				continue // no Go program can ask for it
			}
			if back, err := tasks.ParseDatatype(dtype.String()); err != nil || back != dtype {
				t.Fatalf("%v is read back as %v, %v", dtype, back, err)
			}
			s := tierflow.Run(t, append(strings.Fields("bench coll allreduce --topo 3x1 --iters 1 --json --link none --plan w=2 --bytes 3200"),
				"--dtype", dtype.String(), "--reduce-op", op.String())...)
			if s.Status != 0 {
				t.Fatalf("%s of %s: %s", op, dtype, s.Errors)
			}
		}
	}
}

func TestBenchTable(t *testing.T) {
	out := tierflow.Succeeds(t, strings.Fields("bench coll allreduce --topo 2x2 --bytes 1KiB --plan shape=han "+quick)...)
	lines := rowLines(out)
	last := strings.Fields(lines[len(lines)-1])
	if len(last) != len(columns) || last[0] != "allreduce" || last[1] != "han" || last[2] != "1KiB" || last[3] != "2" || last[10] != "0" {
		t.Errorf("last row %q", last)
	}
	if !strings.Contains(out, "no link is emulated") || !strings.Contains(out, "4 goroutine ranks on 2 nodes") {
		t.Errorf("the header of\n%s\ndoesn't say what was measured", out)
	}
}

// Buffers of planner.Alloc are measured as others are, and given back.
func TestBenchAlloc(t *testing.T) {
	out := tierflow.Succeeds(t, strings.Fields("bench coll bcast,allreduce,allgather,barrier --topo 1x3 --bytes 8,64KiB --alloc "+quick)...)
	if rows := strings.Count(out, " han ") + strings.Count(out, " ar "); rows != 7 || !strings.Contains(out, "# buffers are planner.Alloc's") {
		t.Errorf("%d rows of 7 in\n%s", rows, out)
	}
}

// A sample of single calls is one call from root 0, whatever it takes.
func TestBenchSingle(t *testing.T) {
	rows := rowsOf(t, strings.Fields("bench coll bcast,allreduce --single --bytes 8,64KiB --topo 1x2 --iters 30 --json")...)
	if len(rows) != 4 {
		t.Fatalf("%d rows, want 4", len(rows))
	}
	for _, r := range rows {
		if !r.Single || r.Iters != 30 || r.Wrong != 0 || r.P50 <= 0 || r.P99 < r.P50 {
			t.Errorf("%+v", r)
		}
	}
}

// A rank that is late makes its call late, and no more calls than that.
func TestBenchSkew(t *testing.T) {
	rows := rowsOf(t, strings.Fields("bench coll allreduce --single --skew 2ms --bytes 8 --topo 1x2 --iters 5 --json")...)
	if len(rows) != 1 || rows[0].Skew != 2000 || rows[0].Min < 2000 || rows[0].Wrong != 0 {
		t.Errorf("%+v", rows)
	}
	tierflow.RefusesAll(t, "bench coll allreduce --topo 1x2", map[string]string{
		"--skew 2ms":           "--skew 2ms: at most 100ms, and only with --single",
		"--skew -1ms --single": "--skew -1ms: at most 100ms",
		"--skew 1s --single":   "--skew 1s: at most 100ms",
	})
}

// However short it is, an operation measured by single calls is called once a sample.
func TestSingleCallsAreSingle(t *testing.T) {
	r := tasks.Request{Coll: tasks.Allreduce, Count: 4, Type: tasks.Float32, Op: tasks.Sum}
	onRanks(t, "2", r, false, func(ctx context.Context, c *planner.Comm, s *subject) error {
		if err := measure(ctx, []*subject{s}, effort{samples: 10, single: true}); err != nil {
			return err
		}
		if s.perCall != 1 || len(s.times) != 10 || s.wrong[0] != 0 {
			t.Errorf("%d calls in a sample, %d samples, %d wrong; want 1, 10, 0", s.perCall, len(s.times), s.wrong[0])
		}
		return nil
	})
}

// Several plans make rows in turn, which say whose they are.
func TestBenchPlans(t *testing.T) {
	out := tierflow.Succeeds(t, strings.Fields("bench coll allreduce --topo 2x2 --bytes 1KiB --plan shape=han --plan shape=han-lockstep,fs=256 "+quick)...)
	lines := rowLines(out)
	for i, want := range []string{"shape=han", "shape=han-lockstep,fs=256"} {
		row := strings.Fields(lines[len(lines)-2+i])
		if len(row) != len(columns)+1 || row[len(columns)] != want || !strings.HasPrefix(want, "shape="+row[1]) || row[10] != "0" {
			t.Errorf("row %d: %q, want one of %s", i, row, want)
		}
	}
	for flags, want := range map[string]string{
		"--plan shape=han --plan shape=round":     "--plan: ",
		strings.Repeat("--plan w=1 ", MaxPlans+1): "at most 16",
	} {
		if r := tierflow.Run(t, append(strings.Fields("bench coll allreduce "+flags), strings.Fields(quick)...)...); !strings.Contains(r.Errors, want) {
			t.Errorf("%s: %q has no %q", flags, r.Errors, want)
		}
	}
}

// A plan that barriers can't have is for what is measured alone.
func TestBenchPlanNotForBarriers(t *testing.T) {
	const plan = "shape=han,fs=15KiB,i=adapt/splitbinary"
	args := strings.Fields("bench coll bcast --topo 4x1 --bytes 20KiB --json " + quick)
	check := func(args ...string) {
		rows := rowsOf(t, args...)
		if len(rows) != 1 || rows[0].Wrong != 0 || !strings.Contains(rows[0].Plan, "i=adapt/splitbinary") {
			t.Errorf("rows %+v, want one of %s", rows, plan)
		}
	}
	check(append(args, "--plan", plan)...)
	check(append(args, "--plan", "bcast:"+plan)...)
	if s := tierflow.Run(t, append(args[:2:2], "barrier", "--topo", "4x1", "--iters", "2", "--plan", plan)...); s.Status != 1 || !strings.Contains(s.Errors, "barrier: ir=adapt/splitbinary") {
		t.Errorf("a barrier that is measured with %s: %+v", plan, s)
	}
}

// Each root is measured by itself, and how much roots differ is told.
func TestBenchAllRoots(t *testing.T) {
	line := "bench coll scatter,allreduce --topo 2x2 --bytes 400 --plan shape=han --root all " + quick
	rows := rowsOf(t, strings.Fields(line+" --json")...)
	if len(rows) != 2 || rows[0].Roots == nil || rows[1].Roots != nil || rows[0].Iters != 4*2 || rows[1].Iters != 2 {
		t.Fatalf("rows %+v, want the roots of a scatter", rows)
	}
	s := rows[0].Roots
	if len(s.P50) != 4 || s.Min != slices.Min(s.P50) || s.Max != slices.Max(s.P50) || s.Median < s.Min || s.Median > s.Max || s.Ratio < 1 {
		t.Errorf("roots %+v", s)
	}
	lines := rowLines(tierflow.Succeeds(t, strings.Fields(line)...))
	for i, want := range []string{"scatter", "allreduce"} {
		cells := strings.Fields(lines[len(lines)-2+i])
		if len(cells) != len(columns)+4 || cells[0] != want || cells[10] != "0" || (cells[len(columns)] == "-") != (want == "allreduce") {
			t.Errorf("row %q", cells)
		}
	}
}

// Samples are asked for, and are those that a row sums up.
func TestBenchSamples(t *testing.T) {
	rows := rowsOf(t, strings.Fields("bench coll bcast --topo 2x2 --bytes 400 --root all/2 --iters 3 --link none --json --samples")...)
	for _, r := range rows {
		if len(r.Samples) != 2*3 || r.Iters != 2*3 || slices.Min(r.Samples) != r.Min || slices.Max(r.Samples) != r.P99 || r.Half <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(rows) != 2 {
		t.Errorf("%d rows, want flat and what is chosen", len(rows))
	}
	tierflow.Refuses(t, "--samples: it is for --json", "bench", "coll", "bcast", "--samples")
	tierflow.Refuses(t, "--samples: a simulation", "bench", "coll", "bcast", "--samples", "--json", "--simulate", "assumed")
}

// Blocks that differ come out right, and their bandwidth counts all of them.
func TestBenchCounts(t *testing.T) {
	line := "bench coll allgather,reducescatter --topo 2x2 --counts 300,0,1000,7 --json " + quick
	rows := rowsOf(t, strings.Fields(line)...)
	if len(rows) != 4 {
		t.Fatalf("%d rows, want flat and the rule's of two collectives", len(rows))
	}
	for _, r := range rows {
		if r.Wrong != 0 || r.Bytes != 4000 || !slices.Equal(r.Counts, []int64{300, 0, 1000, 7}) || r.AlgBW != kit.RoundRate(4*1307/1e3/r.P50) {
			t.Errorf("%+v", r)
		}
	}
}

// Elements that are not what they should be are counted, and the run fails.
func TestBenchCountsWrongElements(t *testing.T) {
	r := tasks.Request{Coll: tasks.Allreduce, Count: 1000, Type: tasks.Float32, Op: tasks.Sum}
	onRanks(t, "2", r, false, func(ctx context.Context, c *planner.Comm, s *subject) error {
		if c.Rank() == 1 {
			binary.NativeEndian.PutUint32(s.send[7*4:], math.Float32bits(1000)) // not what others expect of it
		}
		if err := measure(ctx, []*subject{s}, effort{samples: 1}); err != nil {
			return err
		}
		if c.Rank() == 0 {
			row := newResult(s)
			if samples := int64(3 + 1); row.Wrong != 2*samples { // both ranks, warm-up too
				t.Errorf("%d elements are wrong, want %d", row.Wrong, 2*samples)
			}
			var out strings.Builder
			table := Results{Out: &out}
			if err := table.addRow(row); err != nil {
				return err
			}
			if err := table.printEnd(); err == nil || !strings.Contains(err.Error(), "8 elements are wrong, in 1 of 1 rows") {
				t.Errorf("the end is %v", err)
			}
		}
		return nil
	})
}

// A short operation is called often in a sample, and by turns from each root.
func TestShortOperationsRotate(t *testing.T) {
	r := tasks.Request{Coll: tasks.Bcast, Count: 4, Type: tasks.Float32}
	onRanks(t, "2", r, true, func(ctx context.Context, c *planner.Comm, s *subject) error {
		estimate, err := s.warmUp(ctx)
		if err != nil {
			return err
		}
		if calls := int(sampleTime / estimate); s.perCall < min(calls, maxCalls) || len(s.calls) != 2 || s.wrong[0] != 0 {
			t.Errorf("%d calls of %v in a sample, %d roots, %d wrong", s.perCall, estimate, len(s.calls), s.wrong[0])
		}
		before := s.turn
		if _, err := s.takeSample(ctx); err != nil {
			return err
		}
		if s.turn != (before+s.perCall)%2 {
			t.Errorf("after %d calls the turn went from %d to %d", s.perCall, before, s.turn)
		}
		return nil
	})
}

// What is checked is the result of the last call of a sample, from whichever root.
func TestRotatingRootsAreChecked(t *testing.T) {
	for _, coll := range tasks.Requestable() {
		if coll == tasks.Barrier {
			continue
		}
		r := tasks.Request{Coll: coll, Count: 4, Type: tasks.Float32}
		if r.Reduces() {
			r.Op = tasks.Sum
		}
		onRanks(t, "3", r, true, func(ctx context.Context, c *planner.Comm, s *subject) error {
			for root := levels.Rank(1); root < 3; root++ {
				if err := s.addCall(ctx, root); err != nil {
					return err
				}
			}
			for s.perCall = range 7 {
				if _, err := s.takeSample(ctx); err != nil {
					return err
				}
			}
			if s.wrong[0] != 0 {
				t.Errorf("%v: rank %d has %d wrong elements", coll, c.Rank(), s.wrong[0])
			}
			return nil
		})
	}
}

// An interrupt ends a measurement at once, with an error.
func TestBenchEndsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	s := tierflow.RunIn(ctx, t, strings.Fields("bench coll allreduce --topo 2x2 --time 1h --bytes 64KiB")...)
	if took := time.Since(begin); s.Status != 1 || took > 10*time.Second || !strings.Contains(s.Errors, "context deadline exceeded") {
		t.Errorf("status %d after %v: %s", s.Status, took, s.Errors)
	}
}

// A simulation has each root's time.
func TestSimulatedRoots(t *testing.T) {
	args := []string{"bench", "coll", "bcast,reduce", "--topo", "8x3", "--simulate", "assumed", "--bytes", "64KiB", "--json", "--root"}
	for from, want := range map[string]int{"all": 24, "all/5": 5} {
		rows := rowsOf(t, append(args, from)...)
		if len(rows) != 4 {
			t.Fatalf("--root %s: %d rows", from, len(rows))
		}
		for _, r := range rows {
			if r.Roots == nil || len(r.Roots.P50) != want || len(r.Roots.Lows) != want || r.Iters != want || (want == 5) != (r.Roots.Every == 5) || r.Roots.Min < r.Min || r.Roots.Max != r.P99 {
				t.Errorf("--root %s: %+v %+v", from, r, r.Roots)
			}
			if r.Shape == "han" && r.Roots.Ratio > 1.02 {
				t.Errorf("--root %s: a hierarchical %s depends on its root: %+v", from, r.Collective, r.Roots)
			}
		}
	}
}

// A few bytes over a slow link have a bandwidth that can be seen.
func TestSmallBandwidths(t *testing.T) {
	out := tierflow.Succeeds(t, strings.Fields("bench coll bcast --topo 2x1 --bytes 4 --simulate assumed --plan shape=flat")...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	cells := strings.Fields(lines[len(lines)-1])
	if len(cells) < 10 || strings.Trim(cells[8], "0.") == "" || strings.Trim(cells[9], "0.") == "" {
		t.Errorf("algbw and busbw are lost in\n%s", out)
	}
}

// Buffers that can't be made are refused. All together have a bound, and the largest size below it is named: of a block for
// collectives of blocks.
func TestImpossibleBuffers(t *testing.T) {
	tierflow.RefusesAll(t, "bench coll --topo 4x4", map[string]string{
		"alltoall --bytes 1GiB":               "alltoall of 1GiB: buffers of 16 ranks would take over 64GiB together; at most 64MiB each",
		"bcast --bytes 1KiB,4GiB":             "bcast of 4GiB: buffers of 16 ranks would take over 64GiB together; at most 1GiB each",
		"bcast --dtype loc(f16) --bytes 1KiB": "--dtype: there are no buffers of loc(f16): no Go type is made of it",
	})
}
