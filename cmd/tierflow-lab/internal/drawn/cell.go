package drawn

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// cell is a request on a machine.
type cell struct {
	number  uint64
	machine *machine.Machine
	on      *levels.Topology
	topo    string
	request tasks.Request
}

// collectives are the drawn ones.
var collectives = []tasks.Collective{
	tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.ReduceScatter, tasks.Gather, tasks.Scatter, tasks.Alltoall,
}

// hand draws numbers.
type hand struct{ *rand.Rand }

// within returns a number between two, as often between 1 and 2 as between 10 and 20.
func (h hand) within(low, high float64) float64 {
	return low * math.Pow(high/low, h.Float64())
}

// whole is within, rounded.
func (h hand) whole(low, high int) int {
	return min(high, int(h.within(float64(low), float64(high)+1)))
}

// draw returns cell number n of a seed. Nodes have equally many ranks, or each as many as is drawn.
func draw(seed, n uint64, isUnequal bool) (*cell, error) {
	h := hand{rand.New(rand.NewPCG(seed, n))}
	c := &cell{number: n, machine: h.machine()}
	nodes, ranks := h.whole(2, 64), h.whole(1, 16)
	c.topo = fmt.Sprintf("%dx%d", nodes, ranks)
	if isUnequal {
		c.topo = ""
		for i := range nodes {
			c.topo += fmt.Sprintf(",n%d:%d", i, h.whole(1, 16))
		}
		c.topo = c.topo[1:]
	}
	c.request = labkit.Request(collectives[h.IntN(len(collectives))], int64(h.within(64, 16<<20))/4*4)
	var err error
	if c.on, err = levels.Parse(c.topo); err == nil {
		err = c.request.Validate(c.on.Size())
	}
	return c, err
}

// machine draws a machine: wires of 0.1 to 400 Gbit/s, a latency of 0.7 to 60 µs, and a memory
// that takes 0.03 to 0.3 ns to copy a byte. Half of the machines speak TCP.
func (h hand) machine() *machine.Machine {
	rate, latency, copied := h.within(0.1, 400), h.within(700, 60e3), h.within(0.03, 0.3)
	wire := machine.Link{Level: 'i', Latency: latency, Byte: 8 / rate, Send: latency * h.within(0.03, 0.3)}
	wire.Recv = wire.Send * h.within(0.7, 1.5)
	if h.IntN(2) == 0 {
		wire.SendByte, wire.RecvByte = copied*h.within(0.5, 2), copied*h.within(0.5, 3)
		wire.MessageBytes, wire.PacketBytes, wire.PacketExtra, wire.BufferBytes = 56, 1448, 66, 128<<10
	} else {
		wire.MessageBytes = 32
	}
	near := machine.Link{Level: 's', Latency: h.within(80, 800), Send: h.within(40, 300), SendByte: copied}
	near.Recv = near.Send
	m := &machine.Machine{
		Version: machine.Version, Provenance: costs.Provenance{Method: "drawn"}, Links: []machine.Link{near, wire},
		CopyByte: copied, ReduceByte: copied * h.within(1, 2), Step: h.within(15, 120), MemoryByte: copied * h.within(0.05, 0.8),
	}
	m.CopyByte, m.ReduceByte = tidy(m.CopyByte), tidy(m.ReduceByte)
	return m
}

// tidy returns a number with three digits.
func tidy(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	return math.Round(x/unit) * unit
}
