package submodules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// emit compiles a bcast of two segments on rank 0 of two, with the given lowering.
func emit(t *testing.T, lower func(e *submodules.Emitter, c *submodules.Call)) *submodules.Program {
	t.Helper()
	topo := tasktest.Topology(t, "2")
	reg := submodules.Registry{plain(func(e *submodules.Emitter, c *submodules.Call) error {
		lower(e, c)
		return nil
	})}
	p := tasks.Plan{Shape: tasks.Flat, Segment: 64, Window: 1}.Set("s", tasks.Choice{Submodule: "scripted"})
	prog, err := submodules.CompileFor(bcast(128, 0), topo.Flat(0), p, 0, reg)
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// waits writes what each step waits for.
func waits(p *submodules.Program) string {
	var all []string
	for id := range dag.ID(p.Len()) {
		all = append(all, fmt.Sprintf("%d%v", id, p.Pred(id)))
	}
	return strings.Join(all, " ")
}

// TestNoneIsNoStep: after None a step begins with its task, next to None it
// waits for the others.
func TestNoneIsNoStep(t *testing.T) {
	p := emit(t, func(e *submodules.Emitter, c *submodules.Call) {
		a := e.Send(1, c.Src, submodules.None)
		e.Send(1, c.Src, submodules.None, a)
	})
	if got, want := waits(p), "0[] 1[0] 2[1] 3[2]"; got != want {
		t.Errorf("got %s, want %s:\n%v", got, want, p)
	}
}

// TestEmitterJoin: one step stands for many; where there is nothing to join, there is no
// step for it.
func TestEmitterJoin(t *testing.T) {
	var joined []dag.ID
	p := emit(t, func(e *submodules.Emitter, c *submodules.Call) {
		if c.Segment > 0 {
			return
		}
		a, b := e.Send(1, c.Src), e.Send(1, c.Src)
		both := e.Join(a, submodules.None, b)
		e.Send(1, c.Src, both)
		joined = []dag.ID{e.Join(), e.Join(submodules.None), e.Join(b, submodules.None), both}
	})
	if want := []dag.ID{submodules.None, submodules.None, 1, 2}; !slices.Equal(joined, want) {
		t.Errorf("joins are %v, want %v", joined, want)
	}
	if got, want := waits(p), "0[] 1[] 2[0 1] 3[2]"; got != want {
		t.Errorf("got %s, want %s:\n%v", got, want, p)
	}
}

// TestTaskWithoutSteps passes on what it waits for.
func TestTaskWithoutSteps(t *testing.T) {
	p := emit(t, func(e *submodules.Emitter, c *submodules.Call) {
		if c.Segment == 0 {
			e.Send(1, c.Src)
		}
	})
	if got, want := waits(p), "0[]"; got != want {
		t.Errorf("got %s, want %s:\n%v", got, want, p)
	}
}

func TestStepOfAnotherTaskPanics(t *testing.T) {
	for name, after := range map[string]dag.ID{"earlier task": 0, "itself": 1, "later": 2} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "of sb#1 runs after step") {
					t.Errorf("recovered %v, want a panic that names the task", p)
				}
			}()
			emit(t, func(e *submodules.Emitter, c *submodules.Call) {
				if c.Segment == 0 {
					e.Send(1, c.Src)
					return
				}
				e.Send(1, c.Src, after)
			})
		})
	}
}

// TestMemoryIsAligned: pieces stand on cache lines of their own, scratch and
// slots are counted apart, and a window of one uses the same place again.
func TestMemoryIsAligned(t *testing.T) {
	var got []string
	p := emit(t, func(e *submodules.Emitter, _ *submodules.Call) {
		got = append(got, e.Scratch(1).String(), e.Scratch(65).String(), e.Scratch(0).String(), e.Slot(64).String(), e.Slot(3).String())
	})
	each := "scratch[0:1] scratch[64:129] scratch[192:192] slot[0:64] slot[64:67]"
	if want := each + " " + each; strings.Join(got, " ") != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if p.Scratch != 192 || p.Slots != 128 {
		t.Errorf("%d bytes of scratch and %d of slots, want 192 and 128", p.Scratch, p.Slots)
	}
}

// TestLaterSegmentTakesMore: memory beyond what the first segment took is nobody
// else's.
func TestLaterSegmentTakesMore(t *testing.T) {
	var at []int64
	p := emit(t, func(e *submodules.Emitter, c *submodules.Call) {
		for range 1 + c.Segment {
			at = append(at, e.Scratch(10).Off)
		}
	})
	if want := []int64{0, 0, 64}; !slices.Equal(at, want) || p.Scratch < 74 {
		t.Errorf("got offsets %v in %d bytes, want %v", at, p.Scratch, want)
	}
}
