package machine

import "github.com/tierflow/tierflow/costs"

// Assumed returns a machine without measurements: servers on Gigabit Ethernet by TCP, 50 µs away,
// and sites 1 ms away. A file for another machine begins with it.
func Assumed() *Machine {
	tcp := Link{
		Level: 'i', Latency: 50e3, Byte: 8, Send: 4e3, Recv: 4e3, SendByte: 0.2, RecvByte: 0.3,
		MessageBytes: 56, PacketBytes: 1448, PacketExtra: 66, BufferBytes: 128 << 10,
	}
	site := tcp
	site.Level, site.Latency = 'w', 1e6
	return &Machine{
		Version:    Version,
		Provenance: costs.Provenance{Method: "assumed"},
		Links:      []Link{{Level: 's', Latency: 200, Send: 100, Recv: 100, SendByte: 0.1}, tcp, site},
		CopyByte:   0.1, ReduceByte: 0.15, Step: 50, MemoryByte: 0.02,
	}
}
