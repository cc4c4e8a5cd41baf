// Package machinetest has machines that tests simulate: three speeds of links between nodes.
package machinetest

import "github.com/tierflow/tierflow/costs/machine"

// Speed is a kind of link between nodes. Times are ns.
type Speed struct {
	Name    string
	Byte    float64 // of a byte on the wire
	Latency float64 // to the other end
	PerOp   float64 // of the processor, for a message at either end
}

// Speeds are from slow to fast.
var Speeds = [3]Speed{
	{"100 Mbit/s", 80, 50e3, 4e3},
	{"10 Gbit/s", 0.8, 15e3, 2e3},
	{"100 Gbit/s", 0.08, 2e3, 500},
}

// Machine is the assumed machine with such links.
func (s Speed) Machine() *machine.Machine {
	m := machine.Assumed()
	for k := range m.Links {
		if l := &m.Links[k]; l.Level == 'i' {
			l.Byte, l.Latency, l.Send, l.Recv = s.Byte, s.Latency, s.PerOp, s.PerOp
		}
	}
	return m
}
