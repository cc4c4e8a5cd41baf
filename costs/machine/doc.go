// Package machine describes a machine by numbers. From them a simulator knows how long messages,
// copies and reductions take.
//
// The model is LogGOPS (Hoefler, Schneider, Lumsdaine: LogGOPSim, HPDC 2010) with a link per level.
// A description is written by hand, or measured between pairs of ranks. It is never fitted to
// collectives: that would hide gaps of the model.
//
// The package reads and writes files of such descriptions. It measures nothing and
// simulates nothing.
//
//	m, err := machine.Parse("machine.json", data)
//	link, err := m.Link(topology.Level(0))
//
// # A message
//
// A message of n bytes from rank a to rank b uses the link of the innermost level on which they
// share a domain. All times are ns, all sizes bytes:
//
//	rank a     send_ns + n·send_byte_ns               its processor is busy
//	wire       gap_ns + wire(n)·byte_ns               one direction of a's domain, and of b's
//	way        latency_ns                             first byte out to first byte in
//	rank b     recv_ns + n·recv_byte_ns               its processor is busy
//
//	wire(n) = message_bytes + n + packet_extra_bytes·⌈(message_bytes + n)/packet_bytes⌉
//
// A domain's two directions are independent. Each is shared by all ranks of the domain: messages
// pass one after the other. The domain is the one just inside the link's level. For the network
// this is the node. An idle wire lets burst_bytes pass in no time.
//
// The parts overlap: a long message is on the wire while its sender still copies the rest to the
// kernel. Only the first packet_bytes of either side can't overlap.
package machine
