package clock_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/tierflow/tierflow/levels/clock"
)

func ExampleEstimate() {
	f, ok := clock.Estimate([]clock.Ping{
		{T1: 0, T2: 1040, T3: 1041, T4: 90},      // quick there
		{T1: 100, T2: 1190, T3: 1191, T4: 200},   // quick back
		{T1: 300, T2: 1900, T3: 1901, T4: 1_500}, // slow both ways
	}, 0)
	fmt.Println(f, ok)
	// Output:
	// {1500 1016 26} true
}

// skewed is a clock that is ahead of the true one, runs at another rate and steps once.
type skewed struct {
	ahead   int64
	ppm     float64
	stepsAt int64 // true time
	step    int64
}

// at is what the clock shows at a true time.
func (s skewed) at(t int64) int64 {
	v := t + s.ahead + int64(s.ppm*float64(t)/1e6)
	if s.step != 0 && t >= s.stepsAt {
		v += s.step
	}
	return v
}

// machine simulates two nodes whose messages take their time, more in one direction.
type machine struct {
	rng  *rand.Rand
	true int64
	me   skewed
	it   skewed
}

// way is how long a message takes: some microseconds, and now and then a time slice.
func (m *machine) way(least int64) int64 {
	d := least + int64(m.rng.ExpFloat64()*8_000)
	if m.rng.IntN(10) == 0 {
		d += m.rng.Int64N(4_000_000)
	}
	return d
}

// pings sends some.
func (m *machine) pings(n int) (all []clock.Ping) {
	for range n {
		p := clock.Ping{T1: m.me.at(m.true)}
		m.true += m.way(12_000)
		p.T2 = m.it.at(m.true)
		m.true += m.rng.Int64N(3_000)
		p.T3 = m.it.at(m.true)
		m.true += m.way(3_000) // the way back is quicker
		p.T4 = m.me.at(m.true)
		all = append(all, p)
	}
	return all
}

// ahead is the truth: how much it is ahead of me when I show t.
func (m *machine) ahead(t int64) int64 {
	low, high := int64(0), m.true+1
	for low < high {
		if mid := (low + high) / 2; m.me.at(mid) < t {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return m.it.at(low) - t
}

// The truth lies within the stated bound, whatever offset and drift clocks have.
func TestBound(t *testing.T) {
	const fixes = 1000
	for i, of := range []struct{ me, it skewed }{
		{},
		{me: skewed{ahead: 3e9, ppm: 40}},
		{me: skewed{ppm: -50}, it: skewed{ahead: -7e15, ppm: 50}},
		{it: skewed{ahead: 3e9, ppm: 40}},
	} {
		m := machine{rng: rand.New(rand.NewPCG(7, uint64(i))), me: of.me, it: of.it}
		all := clock.Map{PPM: clock.Quartz}
		var errs []int64
		for n := range fixes {
			f, ok := clock.Estimate(m.pings(100), clock.Quartz)
			if !ok || !all.Add(f) {
				t.Fatalf("case %d, fix %d: %+v, %v: no clock has stepped", i, n, f, ok)
			}
			if d := m.ahead(f.At) - f.Ahead; max(d, -d) > f.Error+1 {
				t.Errorf("case %d, fix %d: %d ns off, more than the bound %d", i, n, d, f.Error)
			}
			errs = append(errs, f.Error)
			m.true += m.rng.Int64N(1e9)
		}
		slices.Sort(errs)
		t.Logf("case %d: bound %d ns in half of the fixes, %d in 99%%, %d at most", i, errs[fixes/2], errs[fixes*99/100], errs[fixes-1])
		if errs[fixes*99/100] > 20_000 {
			t.Errorf("case %d: the bound of 99%% of fixes is %d ns", i, errs[fixes*99/100])
		}
		first, last := all.Fixes[0].At, all.Fixes[fixes-1].At
		for range 5000 {
			at := first - 5e9 + m.rng.Int64N(last-first+10e9)
			at = min(max(at, m.me.at(0)), m.me.at(m.true))
			global, off := all.Global(at)
			if d := at + m.ahead(at) - global; max(d, -d) > off+2 {
				t.Errorf("case %d: at %d %d ns off, more than the bound %d", i, at, d, off)
			}
		}
	}
}

// A step is seen: within pings, and between fixes.
func TestStep(t *testing.T) {
	m := machine{rng: rand.New(rand.NewPCG(1, 1)), me: skewed{ppm: 10}}
	m.it = skewed{ahead: 5, stepsAt: 50_000_000_000, step: -2_000_000}
	all := clock.Map{PPM: clock.Quartz}
	f, ok := clock.Estimate(m.pings(100), clock.Quartz)
	if !ok || !all.Add(f) {
		t.Fatal(f, ok)
	}
	m.it.stepsAt = m.true + 500_000
	if f, ok := clock.Estimate(m.pings(200), clock.Quartz); ok {
		t.Errorf("a step of 2 ms within the pings gives %+v", f)
	}
	if f, ok = clock.Estimate(m.pings(100), clock.Quartz); !ok || all.Add(f) {
		t.Errorf("%+v, %v: fits to the fix before a step of 2 ms", f, ok)
	}
	mid := (all.Fixes[0].At + all.Fixes[1].At) / 2
	if global, off := all.Global(mid); off < 1_000_000 || max(global-mid, mid-global) > off+2_000_000 {
		t.Errorf("between fixes that a step separates: %d, bound %d; it should span both", global-mid, off)
	}
}

func TestEstimateRefuses(t *testing.T) {
	for _, all := range [][]clock.Ping{
		nil,
		{{T1: 5, T4: 4}},
		{{T2: 5, T3: 4, T4: 10}},
		{{T1: 0, T2: 100, T3: 100, T4: 10}, {T1: 20, T2: 400, T3: 400, T4: 30}},
	} {
		if f, ok := clock.Estimate(all, clock.Quartz); ok {
			t.Errorf("%v gives %v", all, f)
		}
	}
	var same clock.Map
	if global, off := same.Global(77); global != 77 || off != 0 {
		t.Errorf("of one clock: %d, %d", global, off)
	}
}

// fake is a clock that goes on by itself whenever it is read.
type fake struct {
	mu sync.Mutex
	t  int64
}

func (f *fake) skew(by int64) func() int64 {
	return func() int64 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.t += 1000
		return f.t + by
	}
}

func TestAskAndAnswer(t *testing.T) {
	var tick fake
	here, there := net.Pipe()
	answered := make(chan error, 1)
	go func() { answered <- clock.Answer(there, tick.skew(-3e9), 2) }()
	f, same, err := clock.Ask(here, tick.skew(+4e9), 1, 100)
	if d := f.Ahead + 7e9; err != nil || same || max(d, -d) > f.Error || f.Error > 5000 {
		t.Errorf("%+v, %v, %v; want -7 s within the error", f, same, err)
	}
	here.Close()
	if err := <-answered; err != nil {
		t.Errorf("the end of a connection is %v", err)
	}

	here, there = net.Pipe()
	go func() { answered <- clock.Answer(there, tick.skew(0), 1) }()
	if f, same, err := clock.Ask(here, tick.skew(0), 1, 100); err != nil || !same || f != (clock.Fix{}) {
		t.Errorf("one clock: %+v, %v, %v", f, same, err)
	}
	there.Close()
	if err := <-answered; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a connection that is closed here: %v", err)
	}
	if _, _, err := clock.Ask(here, tick.skew(0), 1, 100); err == nil {
		t.Error("nobody answers, and there is no error")
	}
}
