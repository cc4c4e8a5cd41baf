package simulate

import (
	"slices"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/printable"
	"github.com/tierflow/tierflow/levels/strictjson"
)

// network is a model's layers, from the first to the last.
type network struct {
	source string // where the times are from
	layers []networkLayer
}

// networkLayer is a rank's computing in a layer, and the elements of its tensors.
type networkLayer struct {
	name              string
	forward, backward float64 // ns
	tensors           []int
}

// maxLayers bounds a file of layers, bytes.
const maxLayers = 16 << 20

// readNetwork reads a file of layers.
func readNetwork(name string) (n network, err error) {
	data, err := files.Read(name, maxLayers)
	if err != nil {
		return n, kit.Usagef("--layers: %w; allowed is a file such as testdata/layers/resnet50.json", err)
	}
	r, err := strictjson.NewReader(name, data)
	if err != nil {
		return n, kit.UsageError(err)
	}
	r.Object("a model", []string{"source", "layers"}, 2, func(key string) {
		if key == "source" {
			n.source = printable.Text(r.Text(key))
			return
		}
		r.Array(`"layers"`, func() { n.layers = append(n.layers, readLayer(r)) })
	})
	return n, kit.UsageError(r.Err())
}

func readLayer(r *strictjson.Reader) (l networkLayer) {
	line := r.Line()
	keys := []string{"name", "forward_ns", "backward_ns", "tensors"}
	values := map[string]any{"name": &l.name, "forward_ns": &l.forward, "backward_ns": &l.backward, "tensors": &l.tensors}
	fitted := true
	r.Object("a layer", keys, len(keys), func(key string) { fitted = r.Decode(values[key], key) && fitted })
	if fitted && (l.forward < 0 || l.backward < 0 || l.forward > mostLayer || l.backward > mostLayer) {
		r.Complain(line, "layer %q takes %g and %g ns; allowed are 0 to %g", l.name, l.forward, l.backward, float64(mostLayer))
	}
	if fitted && slices.ContainsFunc(l.tensors, func(n int) bool { return n < 1 }) {
		r.Complain(line, "layer %q has tensors of %v elements; allowed are 1 or more", l.name, l.tensors)
	}
	l.name = printable.Text(l.name)
	return l
}

// mostLayer bounds the time of a layer, ns.
const mostLayer = 1e12

// sizes are the elements of all tensors, and order how they become ready: the last layer's first.
func (n *network) sizes() (sizes, order []int) {
	for _, l := range n.layers {
		sizes = append(sizes, l.tensors...)
	}
	last := len(sizes)
	for _, l := range slices.Backward(n.layers) {
		last -= len(l.tensors)
		for i := range l.tensors {
			order = append(order, last+i)
		}
	}
	return sizes, order
}

// compute is the time of all layers, ns.
func (n *network) compute() (forward, backward float64) {
	for _, l := range n.layers {
		forward, backward = forward+l.forward, backward+l.backward
	}
	return forward, backward
}

// script is a step: all layers forward, then backward, with the start of each bucket as soon as
// its tensors are there.
func (n *network) script(tensors [][]int, calls []sim.Call) (s sim.Script) {
	left, owner := make([]int, len(calls)), map[int][]int{} // by tensor: its buckets
	for k, all := range tensors {
		left[k] = len(all)
		for _, i := range all {
			owner[i] = append(owner[i], k)
		}
	}
	forward, _ := n.compute()
	s.Actions = append(s.Actions, sim.Action{Compute: picoseconds(forward)})
	next, last := 0, 0
	for _, l := range n.layers {
		last += len(l.tensors)
	}
	for _, l := range slices.Backward(n.layers) {
		s.Actions = append(s.Actions, sim.Action{Compute: picoseconds(l.backward)})
		last -= len(l.tensors)
		for i := range l.tensors {
			for _, k := range owner[last+i] {
				left[k]--
			}
		}
		for ; next < len(calls) && left[next] == 0; next++ {
			s.Actions = append(s.Actions, sim.Action{Start: &calls[next]})
		}
	}
	return s
}

func picoseconds(ns float64) sim.Time { return sim.Time(ns * float64(sim.Nanosecond)) }
