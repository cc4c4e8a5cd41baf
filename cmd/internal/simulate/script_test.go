package simulate

import (
	"math"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// model has three layers, the second without tensors.
func model() network {
	return network{layers: []networkLayer{
		{name: "first", forward: 10, backward: 20, tensors: []int{4, 5}},
		{name: "middle", forward: 1, backward: 2},
		{name: "last", forward: 30, backward: 60, tensors: []int{6}},
	}}
}

// Tensors are ready in the order of computing backward, and a bucket starts behind its last one.
func TestScript(t *testing.T) {
	n := model()
	sizes, order := n.sizes()
	if !slices.Equal(sizes, []int{4, 5, 6}) || !slices.Equal(order, []int{2, 0, 1}) {
		t.Errorf("sizes %v, ready in the order %v", sizes, order)
	}
	calls := make([]sim.Call, 2)
	for _, test := range []struct {
		tensors [][]int
		starts  []int // actions before which a bucket starts, in ns of what was computed
	}{
		{[][]int{{2}, {0, 1}}, []int{41 + 60, 41 + 82}},
		{[][]int{{2, 0}, {1}}, []int{41 + 82, 41 + 82}},
		{[][]int{{0, 1, 2}}, []int{41 + 82}},
	} {
		script := n.script(test.tensors, calls[:len(test.tensors)])
		var computed sim.Time
		var starts []int
		for _, a := range script.Actions {
			if computed += a.Compute; a.Start != nil {
				starts = append(starts, int(math.Round(computed.Nanoseconds())))
			}
		}
		if !slices.Equal(starts, test.starts) || computed != picoseconds(41+82) {
			t.Errorf("buckets %v start after %v ns of %v; want %v", test.tensors, starts, computed, test.starts)
		}
	}
}

// Of each level and direction the busiest domain counts, the first of equals.
func TestBusiest(t *testing.T) {
	link := func(level byte, domain int, out, in sim.Time) sim.Link {
		return sim.Link{Level: level, Domain: domain, Out: sim.Use{Busy: out}, In: sim.Use{Busy: in}}
	}
	all := busiest([]sim.Link{link('i', 0, 3, 1), link('s', 0, 9, 9), link('i', 1, 3, 2), link('s', 1, 8, 9), link('i', 2, 2, 2)})
	var got []int
	for _, u := range all {
		got = append(got, u.domain)
	}
	if !slices.Equal(got, []int{0, 1, 0, 0}) || len(busiest(nil)) != 0 {
		t.Errorf("the busiest are %+v", all)
	}
	on := tasktest.Topology(t, "a:2,b:1")
	for want, u := range map[string]use{"b": {level: 'i', domain: 1}, "rank 2": {level: 's', domain: 2}, "?": {level: 'x'}} {
		if got := u.name(on); got != want {
			t.Errorf("%+v is %q; want %q", u, got, want)
		}
	}
}

func TestShare(t *testing.T) {
	if share(1, 4) != 0.25 || share(1, 0) != 0 {
		t.Errorf("%v, %v", share(1, 4), share(1, 0))
	}
}
