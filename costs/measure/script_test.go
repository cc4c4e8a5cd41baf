package measure

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Scripts of pairs send as many messages and bytes as they are to, between the ranks of their pairs alone.
func TestScriptsOfPairs(t *testing.T) {
	on, m := tasktest.Topology(t, "6x1"), machine.Assumed()
	for _, pairs := range [][]pair{{{0, 1}}, {{4, 2}}, {{0, 5}, {3, 1}}, {{0, 1}, {2, 3}, {4, 5}}} {
		for _, n := range []int64{1, 1000, 100_000} {
			many := int64(len(pairs))
			for _, test := range []struct {
				script *script
				bytes  int64 // of all messages
			}{
				{turnScript("turns", pairs, n, 3), many * 6 * n},
				{streamScript("stream", pairs, n, 5, 1, false), many * (5*n + 1)},
				{streamScript("stream", pairs, n, 5, 5, false), many * (5*n + 1)},
				{streamScript("streams", pairs, n, 5, 5, true), many * 2 * (5*n + 1)},
				{sendScript("sends", pairs, n, 4), many * 4 * n},
				{sendScript("nothing", pairs, n, 0), 0},
			} {
				r, err := test.script.simulateOn(on, m, sim.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if r.Bytes != test.bytes {
					t.Errorf("%s of %d bytes between %v: %d bytes, want %d", test.script.name, n, pairs, r.Bytes, test.bytes)
				}
				for rank, end := range r.End {
					isPaired := slices.ContainsFunc(pairs, func(p pair) bool { return int(p.a) == rank || int(p.b) == rank })
					if busy := end > 0; busy != (isPaired && test.bytes > 0) {
						t.Errorf("%s between %v: rank %d ends at %v", test.script.name, pairs, rank, end)
					}
				}
			}
		}
	}
}

// Reads of another rank's memory are copies of the first rank, and nothing travels for them but words.
func TestReadScript(t *testing.T) {
	on, m := tasktest.Topology(t, "1x3"), machine.Assumed()
	m.MemoryByte, m.PeerCopy, m.PeerByte, m.CopyByte = 0, 100, 0.5, 1
	var times []float64
	for _, count := range []int{1, 2, 10} {
		r, err := readScript("reads", pair{2, 0}, 1000, count).simulateOn(on, m, sim.Options{})
		if err != nil || r.Bytes != 0 || r.End[1] != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		times = append(times, r.End[2].Nanoseconds())
	}
	each := times[1] - times[0]
	if want := 100 + 1000*1.5 + m.Step; math.Abs(each-want) > 1 || math.Abs(times[2]-times[0]-9*each) > 1 {
		t.Errorf("1, 2 and 10 reads take %v ns; each should take %v", times, want)
	}
}

// Chains of local steps grow by the same time with each step.
func TestLocalScripts(t *testing.T) {
	on, m := tasktest.Topology(t, "2x2"), machine.Assumed()
	m.MemoryByte, m.Step, m.CopyByte, m.ReduceByte = 0, 10, 0.5, 2
	for name, test := range map[string]struct {
		emit func(e *submodules.Emitter, count int)
		want float64 // ns a step
	}{
		"copies":     {func(e *submodules.Emitter, count int) { copyOver(e, 1000, count) }, 510},
		"reductions": {func(e *submodules.Emitter, count int) { reduceOver(e, 1000, count) }, 2010},
		"joins":      {emitJoins, 10},
	} {
		var ends []float64
		for count := 1; count <= 4; count++ {
			s := soloScript(func(e *submodules.Emitter) { test.emit(e, count) }, 1, 2)
			s.name, s.bytes, s.adds = fmt.Sprint(name, count), 1, name == "reductions"
			r, err := s.simulateOn(on, m, sim.Options{})
			if err != nil || r.End[0] != 0 || r.End[3] != 0 || r.End[1] != r.End[2] {
				t.Fatalf("%s: %+v, %v", name, r, err)
			}
			ends = append(ends, r.End[1].Nanoseconds())
		}
		for i := 1; i < len(ends); i++ {
			if math.Abs(ends[i]-ends[i-1]-test.want) > 0.01 {
				t.Errorf("%s: 1 to 4 of them take %v ns, each should take %v", name, ends, test.want)
			}
		}
	}
}

// Gathers and barriers of some ranks end no earlier than their last member, and leave the others alone.
func TestScriptsOfGroups(t *testing.T) {
	on, m := tasktest.Topology(t, "5x1"), machine.Assumed()
	start := make([]sim.Time, 5)
	start[3] = sim.Millisecond
	for _, ranks := range [][]levels.Rank{{0, 3}, {3, 0, 1}, {4, 2, 1, 3}} {
		for name, s := range map[string]*script{"gather": gatherOf(ranks, 100), "barrier": barrierOf(ranks)} {
			r, err := s.simulateOn(on, m, sim.Options{Start: start})
			if err != nil {
				t.Fatal(err)
			}
			if r.End[ranks[0]] <= sim.Millisecond {
				t.Errorf("%s of %v: the first one ends at %v", name, ranks, r.End[ranks[0]])
			}
			for rank, end := range r.End {
				member := slices.Contains(ranks, levels.Rank(rank))
				if !member && end != start[rank] || member && name == "barrier" && end <= sim.Millisecond {
					t.Errorf("%s of %v: rank %d ends at %v", name, ranks, rank, end)
				}
			}
		}
	}
}

// Quantities add their intervals like independent ones.
func TestQuantities(t *testing.T) {
	a, b := quantity{10, 3}, quantity{4, 4}
	if got := a.less(b); got != (quantity{6, 5}) {
		t.Errorf("10±3 less 4±4 is %v", got)
	}
	if got := b.less(a).positive(); got != (quantity{0, 5}) {
		t.Errorf("4±4 less 10±3, not below 0, is %v", got)
	}
	if got := a.times(-0.5); got != (quantity{-5, 1.5}) {
		t.Errorf("10±3 times −0.5 is %v", got)
	}
}

// A measurement has enough when each subject has: the time is shared among them.
func TestEnough(t *testing.T) {
	stop := stats.Stop{Least: 2, Most: 4, Rel: 1e-9, Budget: time.Second}
	few, noisy, many := []float64{1}, []float64{1, 2}, []float64{1, 2, 3, 4}
	for _, test := range []struct {
		slowest [][]float64
		spent   time.Duration
		want    bool
	}{
		{[][]float64{few, many}, time.Hour, false},
		{[][]float64{many, many}, 0, true},
		{[][]float64{noisy, many}, 0, false},
		{[][]float64{noisy, many}, time.Second, false},
		{[][]float64{noisy, many}, 2 * time.Second, true},
		{[][]float64{{5, 5}, {7, 7}}, 0, true},
	} {
		if got := enough(stop, test.slowest, test.spent); got != test.want {
			t.Errorf("%v after %v are enough: %t", test.slowest, test.spent, got)
		}
	}
}

// Memory has its length and, rewritten, its contents.
func TestBuffers(t *testing.T) {
	for _, n := range []int64{0, 1, page - 1, page, 3*page + 5} {
		buf := touchedMemory(n)
		if int64(len(buf)) != n || (buf == nil) != (n == 0) {
			t.Errorf("%d bytes of memory are %d", n, len(buf))
		}
		for i := range buf {
			buf[i] = byte(i * 7)
		}
		want := slices.Clone(buf)
		if rewriteBuffer(buf); !bytes.Equal(buf, want) {
			t.Errorf("%d bytes changed when they were written again", n)
		}
		if more := grown(buf, n+1); int64(len(more)) <= n {
			t.Errorf("%d bytes grown by one are %d", n, len(more))
		}
		if same := grown(buf, n); n > 0 && &same[0] != &buf[0] {
			t.Errorf("%d bytes that suffice were not kept", n)
		}
	}
}
