package sim

import (
	"unsafe"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Need estimates the needs of a whole simulation from some of its ranks.
type Need struct {
	Steps int64 // of all ranks and passes
	Bytes int64 // of memory in use at the same time
	Path  int64 // bytes more for the critical path
}

// Of a Need.
const (
	asked    = 16   // ranks to look at
	inFlight = 0.35 // share of a rank's messages on their way at the same time
	bulkActs = 5    // of sending and receiving a message against credit, beside the step of the sender
)

// Need compiles some ranks and estimates the needs of simulating all, if the others are like them.
// Ranks of equal role share their form.
func (c *Compilation) Need() (n Need, err error) {
	cut, err := tasks.CutRequest(c.Request, c.Topology, c.Plan)
	if err != nil {
		return n, err
	}
	size := c.Topology.Size()
	looked := min(size, asked)
	store := newStore()
	var forms, ranks, acts float64 // bytes of forms, bytes and acts of the ranks looked at
	var steps int64
	for _, p := range partsOf(cut) {
		for k := range looked {
			if err := ask(c.Check); err != nil {
				return n, err
			}
			prog, err := c.compileRank(p.request, cut.On, levels.Rank(k*size/looked))
			if err != nil {
				return n, err
			}
			before := store.count
			s := seatOf(prog, store)
			if store.count > before {
				forms += s.form.memory()
			}
			steps += p.times * int64(s.form.len())
			ranks += s.memory()
			acts += float64(float64(p.times) * float64(s.form.len()+bulkActs*len(s.form.out.steps)))
		}
	}
	scale := float64(size) / float64(looked)
	if store.count > 2 { // most ranks have one of their own
		forms *= scale
	}
	n.Steps = int64(float64(steps) * scale)
	n.Bytes = int64(forms + float64(ranks*scale))
	n.Path = int64(acts * scale * float64(unsafe.Sizeof(act{})))
	return n, nil
}

// memory is the bytes of a form.
func (f *form) memory() float64 {
	return float64(uintptr(cap(f.steps))*unsafe.Sizeof(step{}) + uintptr(cap(f.tasks))*unsafe.Sizeof(taskName{}) +
		4*uintptr(cap(f.succ)+cap(f.first)+cap(f.in.start)+cap(f.in.steps)+cap(f.out.start)+cap(f.out.steps)))
}

// memory is a simulation's bytes of a rank beside its form.
func (s *seat) memory() float64 {
	perPeer := 3*4 + unsafe.Sizeof(conn{}) + unsafe.Sizeof(pair{})
	const perStep = 4 + 1 // pending and flags
	all := float64(unsafe.Sizeof(*s) + unsafe.Sizeof(rank{}) + uintptr(len(s.ranks))*perPeer + uintptr(s.form.len())*perStep)
	if len(s.ranks) > 2 { // in a ring they follow each other
		all += float64(inFlight * float64(uintptr(len(s.form.out.steps))*unsafe.Sizeof(message{})))
	}
	return all
}
