package check_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// machine is the slow twin of the checker: it runs the programs of all ranks in one
// random order, on bytes that say where they come from. Steps take time: each has a
// first and a second moment, between which others do theirs. Garbage is: bytes that
// nobody wrote, the target of a posted recv, and all private memory of a rank that
// has left.
type machine struct {
	progs   []*submodules.Program
	steps   []*running
	at      []map[dag.ID]*running // by rank and step id
	memory  [][tasks.Peer][]string
	results [][]string // by rank, its receive buffer when it left
	sync    bool       // sends end only when their recvs have begun
}

// running is a step with its state. done counts its moments.
type running struct {
	*submodules.Step
	rank     int
	waits    int
	done     int
	priority [2]int
	payload  []string // a send's
	mate     *running
	next     []*running
}

const garbage = "?"

func newMachine(progs []*submodules.Program, random *rand.Rand) *machine {
	m := &machine{progs: progs, at: make([]map[dag.ID]*running, len(progs)), results: make([][]string, len(progs)), sync: random.IntN(2) == 0}
	m.memory = make([][tasks.Peer][]string, len(progs))
	for rank, p := range progs {
		m.fill(rank)
		m.at[rank] = map[dag.ID]*running{}
		for id := range dag.ID(p.Len()) {
			s := &running{Step: p.Step(id), rank: rank, waits: len(p.Pred(id)), priority: [2]int{random.Int(), random.Int()}}
			m.at[rank][id] = s
			m.steps = append(m.steps, s)
		}
	}
	for rank, p := range progs {
		for id := range dag.ID(p.Len()) {
			for _, next := range p.Succ(id) {
				m.at[rank][id].next = append(m.at[rank][id].next, m.at[rank][next])
			}
		}
		for _, peer := range p.Peers {
			other := progs[peer.Rank]
			for n, id := range peer.Out {
				out, in := m.at[rank][id], m.at[peer.Rank][other.Peers[other.PeerIndex(p.Rank)].In[n]]
				out.mate, in.mate = in, out
			}
		}
	}
	return m
}

// fill writes the caller's data: byte 7 of rank 2 is "2@7".
func (m *machine) fill(rank int) {
	p := m.progs[rank]
	r := p.Request
	send, recv := r.Buffers(p.Rank, p.Size)
	sizes := map[tasks.Region]int64{tasks.Send: send, tasks.Recv: recv, tasks.Scratch: p.Scratch, tasks.Slot: p.Slots}
	for region, n := range sizes {
		m.memory[rank][region] = slices.Repeat([]string{garbage}, int(n))
	}
	input := r.Input(p.Rank)
	if (r.Coll == tasks.Bcast || r.Coll == tasks.Scatter) && int(r.Root) != rank || r.Bytes() == 0 {
		return
	}
	at, n := int64(0), r.Bytes()
	switch {
	case r.Exchanges():
		n = sizes[input]
	case r.TakesBlocks():
		last, size := r.Block(levels.Rank(p.Size - 1))
		n = last + size
	case r.Blocks():
		if at, n = r.Block(p.Rank); input == tasks.Send {
			at = 0
		}
	}
	for i := range n {
		m.memory[rank][input][at+i] = fmt.Sprintf("%d@%d", rank, i)
	}
}

// run takes the enabled moment of highest priority until all is done, and
// returns what is wrong in the end.
func (m *machine) run() error {
	for rank := range m.progs {
		m.leave(rank) // those without steps
	}
	for {
		var best *running
		for _, s := range m.steps {
			if m.enabled(s) && (best == nil || s.priority[s.done] > best.priority[best.done]) {
				best = s
			}
		}
		if best == nil {
			return m.judge()
		}
		m.moment(best)
	}
}

func (m *machine) enabled(s *running) bool {
	if s.waits > 0 || s.done == 2 {
		return false
	}
	switch {
	case s.done == 0:
		return true
	case s.Kind.Incoming():
		return s.mate.done == 2
	case s.Kind == submodules.SendStep && m.sync:
		return s.mate.done > 0
	}
	return true
}

// moment does one half of a step's work.
func (m *machine) moment(s *running) {
	half := func(span tasks.Span) tasks.Span {
		cut := span.Len / 2
		if s.done == 0 {
			return span.Cut(0, cut)
		}
		return span.Cut(cut, span.Len-cut)
	}
	switch s.Kind {
	case submodules.SendStep:
		s.payload = append(s.payload, m.bytes(s.rank, half(s.A))...)
	case submodules.RecvStep:
		dst := m.bytes(s.rank, s.Dst)
		if s.done == 0 {
			fillGarbage(dst)
		} else {
			copy(dst, s.mate.payload)
		}
	case submodules.CopyStep:
		copy(m.bytes(s.rank, half(s.Dst)), m.bytes(s.rank, half(s.A)))
	case submodules.ReduceStep:
		a, b := m.bytes(s.rank, half(s.A)), m.bytes(s.rank, half(s.B))
		dst := m.bytes(s.rank, half(s.Dst))
		for i := range dst {
			dst[i] = combine(a[i], b[i])
		}
	}
	if s.done++; s.done == 2 {
		for _, next := range s.next {
			next.waits--
		}
		m.leave(s.rank)
	}
}

// combine joins ranks of one offset: "0@7" and "2@7" are "0,2@7".
func combine(a, b string) string {
	x, at, ok := strings.Cut(a, "@")
	y, same, ok2 := strings.Cut(b, "@")
	if !ok || !ok2 || at != same {
		return garbage
	}
	return x + "," + y + "@" + at
}

func fillGarbage(b []string) {
	for i := range b {
		b[i] = garbage
	}
}

// bytes is where a span is; exposed memory nobody was told of is garbage.
func (m *machine) bytes(rank int, s tasks.Span) []string {
	if s.Region == tasks.Peer {
		await := m.at[rank][dag.ID(s.Ref)]
		if await.done < 2 {
			return slices.Repeat([]string{garbage}, int(s.Len))
		}
		exposed := await.mate.A
		rank, s = await.mate.rank, exposed.Cut(s.Off, s.Len)
	}
	return m.memory[rank][s.Region][s.Off : s.Off+s.Len]
}

// leave ends a rank's run after its last step: the caller has its result, and
// the next run may write to all memory that this one had.
func (m *machine) leave(rank int) {
	for _, s := range m.at[rank] {
		if s.done < 2 {
			return
		}
	}
	m.results[rank] = slices.Clone(m.memory[rank][tasks.Recv])
	for _, region := range m.memory[rank] {
		fillGarbage(region)
	}
}

// judge compares with what the collective promises.
func (m *machine) judge() error {
	r := m.progs[0].Request
	for rank, got := range m.results {
		for _, s := range m.at[rank] {
			if s.done < 2 {
				return fmt.Errorf("stuck: %s", m.progs[rank].Label(s.Step))
			}
		}
		n := int64(len(got))
		if r.TakesBlocks() && !r.GivesBlocks() { // in place the rest of the buffer holds anything
			_, own := r.Block(levels.Rank(rank))
			n = min(n, own)
		}
		if r.Coll == tasks.Exscan && rank == 0 {
			n = 0 // it is told nothing
		}
		for i := range int(n) {
			if want := promised(r, rank, len(m.progs), i); sorted(got[i], r) != want {
				return fmt.Errorf("rank %d, byte %d: got %s, want %s", rank, i, got[i], want)
			}
		}
	}
	return nil
}

func promised(r tasks.Request, rank, size, i int) string {
	if r.GivesBlocks() {
		for other := range levels.Rank(size) {
			given, at, n := r.Between(other, levels.Rank(rank))
			if !r.TakesBlocks() {
				at, n = r.Block(other)
				given = 0
			}
			if int64(i) >= at && int64(i) < at+n {
				return fmt.Sprintf("%d@%d", other, given+int64(i)-at)
			}
		}
		return garbage
	}
	if r.TakesBlocks() {
		off, _ := r.Block(levels.Rank(rank))
		i += int(off)
	}
	if !r.Reduces() {
		return fmt.Sprintf("%d@%d", r.Root, i)
	}
	switch r.Coll {
	case tasks.Scan:
		size = rank + 1
	case tasks.Exscan:
		size = rank
	}
	all := make([]string, size)
	for rank := range levels.Rank(size) {
		all[rank] = fmt.Sprint(rank)
	}
	return fmt.Sprintf("%s@%d", strings.Join(all, ","), i)
}

// sorted puts ranks in order where the operation doesn't ask for it.
func sorted(got string, r tasks.Request) string {
	ranks, at, ok := strings.Cut(got, "@")
	if !ok || !r.Reduces() || !r.Op.Commutative() {
		return got
	}
	list := strings.Split(ranks, ",")
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	return strings.Join(list, ",") + "@" + at
}
