package sim_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// scripted is a submodule with the steps of a test.
type scripted struct {
	emit func(e *submodules.Emitter, me levels.Rank, buf tasks.Span)
}

func (scripted) Name() string { return "scripted" }

func (scripted) Doc() string { return "steps of a test" }

func (scripted) Reach() submodules.Reach { return submodules.Anywhere }

func (scripted) Algorithms() []submodules.Algorithm {
	return []submodules.Algorithm{{Name: "steps", Ops: []tasks.Collective{tasks.Bcast}}}
}

func (s scripted) Lower(e *submodules.Emitter, c *submodules.Call) error {
	s.emit(e, c.Group.Ranks[c.Me], c.Dst)
	return nil
}

// compileSteps compiles steps of ranks on nodes of their own, with buffers of some bytes.
func compileSteps(t *testing.T, ranks string, bytes int64, emit func(e *submodules.Emitter, me levels.Rank, buf tasks.Span)) (*sim.Job, error) {
	t.Helper()
	r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: bytes}
	plan := tasktest.Plan(t, "shape=flat,fs=all,w=1,i=scripted/steps")
	return sim.Compile(r, tasktest.Topology(t, ranks), plan, submodules.Registry{scripted{emit}})
}

// runSteps compiles steps and simulates them.
func runSteps(t *testing.T, ranks string, bytes int64, m *machine.Machine, o sim.Options, emit func(e *submodules.Emitter, me levels.Rank, buf tasks.Span)) *sim.Result {
	t.Helper()
	j, err := compileSteps(t, ranks, bytes, emit)
	if err != nil {
		t.Fatal(err)
	}
	result, err := j.Run(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Ranks that wait for each other never finish. The error names the first of them and its step.
func TestWaitingForEachOther(t *testing.T) {
	j, err := compileSteps(t, "3x1", 100, func(e *submodules.Emitter, me levels.Rank, buf tasks.Span) {
		to, from := (me+1)%3, (me+2)%3
		e.Send(to, buf.Cut(0, 50), e.Recv(from, buf.Cut(50, 50)))
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Run(plain(), sim.Options{})
	for _, want := range []string{"3 ranks never finish", "rank 0 waits in", "recv"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A message without a receiver is found before anything is simulated.
func TestMessagesWithoutReceivers(t *testing.T) {
	_, err := compileSteps(t, "2x1", 100, func(e *submodules.Emitter, me levels.Rank, buf tasks.Span) {
		e.Send(1-me, buf)
		if me == 0 {
			e.Recv(1, buf)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "rank 0 sends rank 1 1 messages") {
		t.Errorf("error %v", err)
	}
}

// All wires together carry out the bytes sent, and carry in as many. Each wire is as long busy as its
// bytes take.
func TestWiresCarryAllBytes(t *testing.T) {
	sizes := []int64{1, 300, 5000, 70_000, 400_000}
	result := runSteps(t, "5x1", 500_000, plain(), sim.Options{}, func(e *submodules.Emitter, me levels.Rank, buf tasks.Span) {
		for to := range levels.Rank(5) {
			if to != me {
				e.Send(to, buf.Cut(0, sizes[me]))
				e.Recv(to, buf.Cut(0, sizes[to]))
			}
		}
	})
	var out, in int64
	for _, l := range result.Links {
		if l.Level != 'i' {
			continue
		}
		out, in = out+l.Out.Bytes, in+l.In.Bytes
		if want := 4 * sizes[l.Domain]; l.Out.Bytes != want || l.Out.Messages < 4 {
			t.Errorf("node %d sends %d bytes in %d messages, want %d", l.Domain, l.Out.Bytes, l.Out.Messages, want)
		}
		if want := sim.Time(l.Out.Bytes) * sim.Nanosecond; l.Out.Busy != want { // 1 ns a byte; control messages have none
			t.Errorf("node %d's wire is busy for %v, want %v", l.Domain, l.Out.Busy, want)
		}
	}
	sent := int64(0)
	for _, n := range sizes {
		sent += 4 * n
	}
	if out != sent || in != sent || result.Bytes != sent {
		t.Errorf("%d bytes leave and %d arrive, counted %d; sent %d", out, in, result.Bytes, sent)
	}
}

// A rank's own steps come one after the other, and those of ranks without common resources at
// the same time.
func TestLocalStepsAddUp(t *testing.T) {
	m := plain()
	m.Step = 7
	result := runSteps(t, "3x1", 3000, m, sim.Options{}, func(e *submodules.Emitter, me levels.Rank, buf tasks.Span) {
		last := submodules.None
		for range me { // 0, 1 and 2 copies
			last = e.Copy(buf.Cut(0, 1000), buf.Cut(1000, 1000), last)
		}
	})
	for rank, end := range result.End {
		if want := sim.Time(rank) * 2007 * sim.Nanosecond; end != want || result.Busy[rank] != want {
			t.Errorf("rank %d ends at %v and is busy for %v, want %v", rank, end, result.Busy[rank], want)
		}
	}
	if result.Steps != 3 || result.Messages != 0 || result.Time != slices.Max(result.End) {
		t.Errorf("%+v", result)
	}
}

// Ranks share processors: two of them do the work of four in twice the time, and giving a processor
// to another rank takes its time.
func TestSharedProcessors(t *testing.T) {
	work := func(e *submodules.Emitter, _ levels.Rank, buf tasks.Span) {
		e.Copy(buf.Cut(0, 1000), buf.Cut(1000, 1000))
	}
	for _, test := range []struct {
		topo  string
		cores machine.Cores
		want  float64 // ns
	}{
		{"4x1", machine.Cores{}, 2000},
		{"4x1", machine.Cores{InAll: 4}, 2000},
		{"4x1", machine.Cores{InAll: 2}, 4000},
		{"4x1", machine.Cores{InAll: 1}, 8000},
		{"2x2", machine.Cores{PerNode: 1}, 4000},
		{"2x2", machine.Cores{PerNode: 2}, 2000},
		{"4x1", machine.Cores{InAll: 2, Switch: 100}, 4200},
	} {
		m := plain()
		m.Cores = test.cores
		result := runSteps(t, test.topo, 2000, m, sim.Options{}, work)
		if got := result.Time.Nanoseconds(); got != test.want {
			t.Errorf("%s with %+v: %v ns, want %v", test.topo, test.cores, got, test.want)
		}
	}
}

// The memory of a node carries all copies of its ranks, and those of other nodes don't matter.
func TestNodesHaveTheirOwnMemory(t *testing.T) {
	copies := func(e *submodules.Emitter, _ levels.Rank, buf tasks.Span) {
		e.Copy(buf.Cut(0, 1000), buf.Cut(1000, 1000))
	}
	for _, test := range []struct {
		topo   string
		memory float64 // ns a byte
		want   float64 // ns
	}{
		{"3x1", 1, 2000}, {"1x3", 1, 6000}, {"2x3", 1, 6000}, {"1x3", 0.1, 2000}, {"1x3", 0, 2000},
	} {
		m := plain()
		m.MemoryByte = test.memory
		if got := runSteps(t, test.topo, 2000, m, sim.Options{}, copies).Time.Nanoseconds(); got != test.want {
			t.Errorf("%s with memory of %v ns a byte: %v ns, want %v", test.topo, test.memory, got, test.want)
		}
	}
}

// Messages after the first that go or come together take what the machine says of them.
func TestMessagesTogether(t *testing.T) {
	two := func(e *submodules.Emitter, me levels.Rank, buf tasks.Span) {
		if me == 0 {
			e.Send(1, buf.Cut(0, 100))
			e.Send(1, buf.Cut(100, 100))
			return
		}
		late := e.Copy(buf.Cut(0, 1000), buf.Cut(1000, 1000)) // until both are there
		e.Recv(0, buf.Cut(0, 100), late)
		e.Recv(0, buf.Cut(100, 100), late)
	}
	for _, test := range []struct {
		send, recv float64 // of a message after the first, ns; 0: as the first one
		want       [2]sim.Time
	}{
		{0, 0, [2]sim.Time{200 * sim.Nanosecond, 2100 * sim.Nanosecond}},
		{30, 0, [2]sim.Time{130 * sim.Nanosecond, 2100 * sim.Nanosecond}},
		{0, 20, [2]sim.Time{200 * sim.Nanosecond, 2070 * sim.Nanosecond}},
	} {
		m := plain()
		m.Links[1].SendMore, m.Links[1].RecvMore = test.send, test.recv
		if got := runSteps(t, "2x1", 2000, m, sim.Options{}, two).End; !slices.Equal(got, test.want[:]) {
			t.Errorf("with %v and %v ns for the second message ranks end at %v, want %v", test.send, test.recv, got, test.want)
		}
	}
}

// A simulation ends at its limit, and at the first error of its check.
func TestEndedSimulations(t *testing.T) {
	const plan = "shape=flat,fs=1KiB,w=8,i=adapt/chain"
	j := job(t, tasks.Bcast, "64x1", 1<<20, plan)
	whole, err := j.Run(plain(), sim.Options{Limit: sim.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Run(plain(), sim.Options{Limit: whole.Time}); err != nil {
		t.Errorf("limited to its time: %v", err)
	}
	if _, err := j.Run(plain(), sim.Options{Limit: whole.Time / 2}); !errors.Is(err, sim.ErrLimit) {
		t.Errorf("limited to half of its time: %v", err)
	}
	enough := errors.New("enough")
	for _, after := range []int64{0, 1} {
		calls, last := 0, int64(0)
		_, err := j.Run(plain(), sim.Options{Check: func(steps int64) error {
			if calls++; steps < last || steps > j.Steps() {
				t.Errorf("%d steps after %d, of %d", steps, last, j.Steps())
			}
			if last = steps; steps >= after {
				return enough
			}
			return nil
		}})
		if !errors.Is(err, enough) || calls == 0 {
			t.Errorf("stopped after %d steps: %v in %d calls", after, err, calls)
		}
	}
}

// Compiling asks its check before each rank, and ends with its error.
func TestEndedCompilation(t *testing.T) {
	r, on, p := problem(t, tasks.Allgather, "4x4", 1000, "shape=flat,fs=all,w=1,i=nbc/ring")
	enough := errors.New("enough")
	for most := range 5 {
		calls := 0
		c := sim.Compilation{Request: r, Topology: on, Plan: p, Registry: all.Submodules(), Check: func() error {
			if calls++; calls > most {
				return enough
			}
			return nil
		}}
		if _, err := c.Job(); !errors.Is(err, enough) || calls != most+1 {
			t.Errorf("a check that fails after %d calls: %v after %d", most, err, calls)
		}
		calls = 0
		if _, err := c.Need(); !errors.Is(err, enough) || calls != most+1 {
			t.Errorf("needs with a check that fails after %d calls: %v after %d", most, err, calls)
		}
	}
}
