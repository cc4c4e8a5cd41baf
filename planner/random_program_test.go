package planner_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// randomProgram is what the ranks of a job do. It follows from its seed and the kind
// of its ranks alone, so that it can be printed, replayed and cut down.
type randomProgram struct {
	seed          uint64
	ranks         string // of randomRanks
	paths         [][]string
	topology      *levels.Topology
	plan          string
	noPeerReads   bool
	deterministic bool
	slow          bool   // messages between goroutine ranks take their time
	machine       []byte // the machine's file; nil: see measured
	measured      bool   // the ranks measure it when they join; else nothing is known
	comms         []*randomComm
	ops           int // their numbers are from 0 to below it
	fault         *randomFault
}

// randomComm is a communicator and what its ranks call on it, one after the other,
// on a goroutine of their own. Parents come before their children; the first one is
// the world's.
type randomComm struct {
	id, depth int
	parent    int   // -1: none
	members   []int // of the world, in the order of its ranks
	ops       []*randomOp
}

// randomKind is what an operation is.
type randomKind uint8

const (
	_         randomKind = iota
	callOp               // a collective
	againOp              // another run of an earlier one
	deriveOp             // Dup, DupWith, Split
	sendOp               // of a message
	recvOp               // of the same
	settleOp             // waits for all that was started and must end
	numRandom            // how many there are
)

var randomKinds = [numRandom]string{callOp: "call", againOp: "again", deriveOp: "derive", sendOp: "send", recvOp: "recv", settleOp: "settle"}

// randomOp is one of them, on all ranks of a communicator. The two ends of a message
// have the same number.
type randomOp struct {
	kind randomKind
	id   int
	at   int // in the communicator's list

	call   *randomRequest // also that of the call that is run again
	again  int            // number of that
	derive *randomDerive
	msg    *randomMessage
}

// randomRequest is a collective call.
type randomRequest struct {
	coll    tasks.Collective
	elem    int // in randomTypes
	op      string
	root    int
	count   int
	counts  []int   // of the v-forms; else nil
	rows    [][]int // of an alltoallv: what each rank gives each; else nil
	told    bool    // ranks know the rows beforehand
	way     randomWay
	runs    int    // of a call that is created
	inPlace uint64 // bits by rank
	shared  uint64 // likewise: buffers from Alloc
	junk    bool   // ranks that receive nothing give a receive buffer all the same
}

// randomWay is how a call is made.
type randomWay uint8

const (
	wayNow   randomWay = iota // one call
	wayRuns                   // created, and run some times
	wayStart                  // created and started
	numWays
)

// randomDerive makes communicators.
type randomDerive struct {
	how      string
	plan     string // of DupWith
	colors   []int
	keys     []int
	children []int // numbers of the communicators by place of their color
}

// randomMessage is a point-to-point message. Ranks are those of the communicator.
type randomMessage struct {
	from, to, tag    int
	elem, n, room    int  // elements of the message and of the receive buffer
	received         bool // else it is left over
	sendNow, recvNow bool // in one call; the end that comes first must start only
	sendAt, recvAt   int
	truncated        bool
}

// ready is after which place in the communicator's list both ends have begun.
func (m *randomMessage) ready() int { return max(m.sendAt, m.recvAt) }

// size is the communicator's.
func (c *randomComm) size() int { return len(c.members) }

// synchronizes tells whether no rank gets beyond the operation before all have come to it.
func (o *randomOp) synchronizes() bool {
	return o.kind == deriveOp || o.kind == callOp && o.call.way != wayStart &&
		(o.call.coll == tasks.Barrier || o.call.coll == tasks.Allreduce && o.call.count > 0)
}

func (o *randomOp) String() string {
	text := fmt.Sprintf("#%d %s", o.id, randomKinds[o.kind])
	switch o.kind {
	case callOp:
		return text + " " + o.call.String()
	case againOp:
		return fmt.Sprintf("%s #%d: %v", text, o.again, o.call)
	case deriveOp:
		d := o.derive
		return fmt.Sprintf("%s: %s%s, colors %v, keys %v, makes %v", text, d.how, d.plan, d.colors, d.keys, d.children)
	case sendOp, recvOp:
		return text + " " + o.msg.String(o.kind)
	}
	return text
}

func (r *randomRequest) String() string {
	text := r.coll.String()
	if r.coll != tasks.Barrier {
		text += fmt.Sprintf(" %d %v", r.count, randomTypes[r.elem])
	}
	if r.counts != nil {
		text += fmt.Sprint(" counts ", r.counts)
	}
	if r.rows != nil {
		text += fmt.Sprintf(" rows %v, told %t", r.rows, r.told)
	}
	if r.op != "" {
		text += " " + r.op
	}
	if r.inPlace != 0 {
		text += fmt.Sprintf(", in place %b", r.inPlace)
	}
	if r.shared != 0 {
		text += fmt.Sprintf(", shared %b", r.shared)
	}
	return fmt.Sprintf("%s, root %d, %s", text, r.root, [numWays]string{"now", fmt.Sprintf("%d runs", r.runs), "started"}[r.way])
}

func (m *randomMessage) String(end randomKind) string {
	text := fmt.Sprintf("r%d>r%d tag %d, %d %v", m.from, m.to, m.tag, m.n, randomTypes[m.elem])
	switch {
	case !m.received:
		text += ", left over"
	case m.room != m.n:
		text += fmt.Sprintf(" into %d", m.room)
	}
	if end == sendOp && m.sendNow || end == recvOp && m.recvNow {
		return text + ", now"
	}
	return text + ", started"
}

func (p *randomProgram) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s, %v, plan %q, no peer reads %t, deterministic %t, slow %t, measured %t\n",
		p.seed, p.ranks, p.topology, p.plan, p.noPeerReads, p.deterministic, p.slow, p.measured)
	if p.machine != nil {
		fmt.Fprintf(&b, "machine: %s\n", p.machine)
	}
	if p.fault != nil {
		fmt.Fprintln(&b, "fault:", p.fault)
	}
	for _, c := range p.comms {
		fmt.Fprintf(&b, "communicator %d of %d, ranks %v\n", c.id, c.parent, c.members)
		for _, o := range c.ops {
			fmt.Fprintln(&b, "  ", o)
		}
	}
	return b.String()
}

// without cuts operations out, with what depends on them.
func (p *randomProgram) without(ids []int) {
	gone := map[int]bool{}
	for _, c := range p.comms {
		if gone[c.id] {
			c.ops = nil
		}
		for _, o := range c.ops {
			if o.kind == deriveOp && slices.Contains(ids, o.id) {
				for _, child := range o.derive.children {
					gone[child] = true
				}
			}
		}
		for i := 0; i < len(c.ops); i++ { // may leave out what makes a child that is gone
			if o := c.ops[i]; slices.Contains(ids, o.id) || o.kind == againOp && slices.Contains(ids, o.again) {
				c.ops = slices.Delete(c.ops, i, i+1)
				i--
			}
		}
	}
	p.comms = slices.DeleteFunc(p.comms, func(c *randomComm) bool { return gone[c.id] })
	if p.fault != nil && p.find(p.fault.op) == nil {
		p.fault = nil
	}
}

// find is the operation with a number, the first of two, and nil if there is none.
func (p *randomProgram) find(id int) *randomOp {
	for _, c := range p.comms {
		for _, o := range c.ops {
			if o.id == id {
				return o
			}
		}
	}
	return nil
}

// comm is the communicator with a number.
func (p *randomProgram) comm(id int) *randomComm {
	i := slices.IndexFunc(p.comms, func(c *randomComm) bool { return c.id == id })
	return p.comms[i]
}
