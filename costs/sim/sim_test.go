package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// plain is a machine whose times can be added by hand: in ns, 1000 on the way, 1 a byte,
// 100 to send, 50 to receive, 2 a byte to copy, 3 to combine; inside nodes 10 on the
// way, 5 to send, 4 to receive.
func plain() *machine.Machine {
	return &machine.Machine{
		Version: machine.Version,
		Links: []machine.Link{
			{Level: 's', Latency: 10, Send: 5, Recv: 4},
			{Level: 'i', Latency: 1000, Byte: 1, Send: 100, Recv: 50},
		},
		CopyByte: 2, ReduceByte: 3,
	}
}

// run simulates a collective of so many bytes.
func run(t testing.TB, coll tasks.Collective, topo string, bytes int64, plan string, m *machine.Machine, o sim.Options) *sim.Result {
	t.Helper()
	result, err := job(t, coll, topo, bytes, plan).Run(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func job(t testing.TB, coll tasks.Collective, topo string, bytes int64, plan string) *sim.Job {
	t.Helper()
	request, topology, p := problem(t, coll, topo, bytes, plan)
	j, err := sim.Compile(request, topology, p, all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func problem(t testing.TB, coll tasks.Collective, topo string, bytes int64, plan string) (tasks.Request, *levels.Topology, tasks.Plan) {
	t.Helper()
	topology := tasktest.Topology(t, topo)
	p := tasktest.Plan(t, plan)
	r := tasks.Request{Coll: coll}
	if coll.HasData() {
		r.Type, r.Count = tasks.Uint8, bytes
	}
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	return r, topology, p
}

// Times that were added by hand.
func TestMessages(t *testing.T) {
	const linear = "shape=flat,fs=all,w=1,i=adapt/linear"
	for _, test := range []struct {
		name  string
		topo  string
		bytes int64
		plan  string
		set   func(*machine.Machine)
		want  []int64 // by rank: ns of its end
	}{
		// send 100, on the wire 1000, on the way 1000, receive 50
		{"eager", "2x1", 1000, linear, nil, []int64{100, 2150}},
		// the step takes 7 on each rank, but the recv is reached early
		{"step", "2x1", 1000, linear, func(m *machine.Machine) { m.Step = 7 }, []int64{107, 2157}},
		// credit: send 100, on the way 1000, receive 50; data: 100, 131072, 1000, 50
		{"credit", "2x1", 128 << 10, linear, nil, []int64{132322, 133372}},
		// the kernel queues 1000 bytes: the sender goes on 1000 ns before all have left
		{"buffer", "2x1", 128 << 10, linear, func(m *machine.Machine) { m.Links[1].BufferBytes = 1000 }, []int64{131322, 133372}},
		// a lead goes without credit; the sender waits until it has left
		{"lead", "2x1", 64 << 10, linear, nil, []int64{65636, 66686}},
		// but not if leads are off
		{"no lead", "2x1", 64 << 10, linear, func(m *machine.Machine) { m.EagerMax = 1000 }, []int64{66786, 67836}},
		// half of the budget is owed: the receiver gives it back first, in a message of its own
		{"budget", "2x1", 1000, linear, func(m *machine.Machine) { m.EagerMax, m.Budget = 1000, 1100 }, []int64{100, 2250}},
		// no room at all: the sender asks (100, 1000, 50), gets credit (100, 1000, 50), sends (100, 1000, 1000, 50)
		{"ask", "2x1", 1000, linear, func(m *machine.Machine) { m.EagerMax, m.Budget = 1000, 1000 }, []int64{3400, 4450}},
		// 2 packets of at most 700 bytes, with 40 more each
		{"packets", "2x1", 1000, linear, func(m *machine.Machine) { m.Links[1].PacketBytes, m.Links[1].PacketExtra = 700, 40 }, []int64{100, 2230}},
		// bytes cost processor time, but only those of the first packet hold up the wire,
		// and the receiver takes all others while they come
		{"overlap", "2x1", 1000, linear, func(m *machine.Machine) {
			m.Links[1].PacketBytes, m.Links[1].SendByte, m.Links[1].RecvByte = 100, 0.5, 0.5
		}, []int64{600, 2250}},
		// without packets nothing overlaps
		{"no overlap", "2x1", 1000, linear, func(m *machine.Machine) { m.Links[1].SendByte, m.Links[1].RecvByte = 0.5, 0.5 }, []int64{600, 3150}},
		// in the node a message costs 5, 10 and 4; of the two to the other node, ready at 105
		// and at 205, the second waits for the first one's bytes: until 1105
		{"shared wire", "2x2", 1000, linear, nil, []int64{205, 19, 2155, 3155}},
		// one processor: rank 0 has it for two sends, 1100 each, then rank 2 for 1000 to reach its
		// recv, then rank 1 for the same and for the message that has come; then rank 2 again
		{"one core", "3x1", 1000, linear, func(m *machine.Machine) { m.Step, m.CopyByte, m.Cores.InAll = 1000, 0, 1 }, []int64{2200, 4250, 4300}},
		{"a core each", "3x1", 1000, linear, func(m *machine.Machine) { m.Step, m.Cores.PerNode = 1000, 1 }, []int64{2200, 3150, 4250}},
		{"gap", "2x2", 1000, linear, func(m *machine.Machine) { m.Links[1].Gap = 30 }, []int64{205, 19, 2185, 3215}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := plain()
			if test.set != nil {
				test.set(m)
			}
			result := run(t, tasks.Bcast, test.topo, test.bytes, test.plan, m, sim.Options{})
			for r, want := range test.want {
				if got := result.End[r]; got != sim.Time(want)*sim.Nanosecond {
					t.Errorf("rank %d ends at %v, want %d ns", r, got, want)
				}
			}
		})
	}
}

// Two members copy 1000 bytes at a time, which takes 2000 ns. If the node's memory takes
// 4000 for each, the second is done after 8000: 6000 later, and it had begun 5 later.
func TestMemory(t *testing.T) {
	const plan = "shape=han,fs=all,w=1,s=solo"
	m := plain()
	free := run(t, tasks.Bcast, "1x3", 1000, plan, m, sim.Options{})
	m.MemoryByte = 2
	shared := run(t, tasks.Bcast, "1x3", 1000, plan, m, sim.Options{})
	if more := shared.Time - free.Time; more != 5995*sim.Nanosecond {
		t.Errorf("%v with own memory, %v with shared memory: %v more, want 5995 ns", free.Time, shared.Time, more)
	}
}

// The path of a message that needs credit: TestMessages adds up the same times.
func TestPath(t *testing.T) {
	result := run(t, tasks.Bcast, "2x1", 128<<10, "shape=flat,fs=all,w=1,i=adapt/linear", plain(), sim.Options{Path: true})
	var got []string
	for _, p := range result.Path {
		got = append(got, fmt.Sprintf("r%d %v %v", p.Rank, p.Cause, p.End-p.Begin))
	}
	want := []string{
		"r1 handling 100ns", "r0 latency 1µs", "r0 handling 50ns", "r0 handling 100ns",
		"r1 sending 131.072µs", "r1 latency 1µs", "r1 handling 50ns",
	}
	if !slices.Equal(got, want) {
		t.Errorf("path\n%q, want\n%q", got, want)
	}
}

// Whole messages along a tree have their sender's wire one after the other: a bcast takes as many messages' time as
// the tree is deep in rounds, from every root. All at once they would take more than half as much again.
func TestWholeMessagesTakeTurns(t *testing.T) {
	for _, test := range []struct {
		nodes, rounds int
		inter         string
	}{{16, 4, "nbc/binomial"}, {13, 4, "adapt/binomial"}, {16, 6, "nbc/knomial"}, {7, 4, "adapt/binary"}} {
		for _, bytes := range []int64{128 << 10, 1 << 20} {
			plan := "shape=han,fs=all,w=1,i=" + test.inter
			one := run(t, tasks.Bcast, "2x1", bytes, plan, machine.Assumed(), sim.Options{}).Time
			for root := range test.nodes {
				request, topology, p := problem(t, tasks.Bcast, fmt.Sprintf("%dx1", test.nodes), bytes, plan)
				request.Root = levels.Rank(root)
				job, err := sim.Compile(request, topology, p, all.Submodules())
				if err != nil {
					t.Fatal(err)
				}
				result, err := job.Run(machine.Assumed(), sim.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if got := float64(result.Time) / float64(one); got > 1.05*float64(test.rounds) {
					t.Errorf("%s, %d nodes, %d B, root %d: as long as %.2f messages, want %d", test.inter, test.nodes, bytes, root, got, test.rounds)
				}
			}
		}
	}
}

// Ranks that all keep messages until they are ready for them share their node's memory, and wait no longer than it
// carries the bytes: a rank that takes many messages in doesn't have it for itself meanwhile.
func TestKeptMessagesShareTheMemory(t *testing.T) {
	const ranks, bytes = 48, 1360
	m := machine.Assumed()
	got := run(t, tasks.Allgather, "1x48", bytes, "shape=han,fs=all,w=1,i=adapt/ring,s=sm/rings", m, sim.Options{}).Time.Nanoseconds()
	carried := 4 * m.MemoryByte * bytes * (ranks - 1) * ranks // to the place and from it
	l := m.Links[0]
	own := (ranks - 1) * (2*m.Step + l.Send + l.Recv + (l.SendByte+2*m.CopyByte)*bytes)
	if got > carried+own || got < carried/2 {
		t.Errorf("%.0f ns; the memory carries all bytes in %.0f, and a rank alone takes %.0f", got, carried, own)
	}
}
