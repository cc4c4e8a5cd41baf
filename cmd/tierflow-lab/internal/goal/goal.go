// Package goal writes and reads schedules in GOAL, the language of LogGOPSim and ATLAHS (Hoefler,
// Schneider, Lumsdaine: LogGOPSim, HPDC 2010): each rank's sends, receives and computations, and
// their order. So other simulators can run tierflow's programs.
//
// It is pure. It simulates nothing.
//
//	s, err := goal.FromPrograms(all, machine)
//	text := s.Format()
//	s, err = goal.Parse("bcast.goal", text)
//
// # What becomes of steps
//
//	send, recv      send, recv; the tag is the place among the messages from rank to rank
//	copy, reduce    calc, as long as the machine takes, in ns
//	join            calc 0
//
// Passes follow each other: the first steps of one wait for all of the one before.
//
// GOAL knows messages only. It has no words for telling a rank of shared memory, or for waiting for
// that. Such steps are errors, and so are programs with submodules sm and solo. It gives no
// priorities to ops that could begin at the same time.
package goal

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// Schedule is what all ranks do, by rank.
type Schedule struct{ Ranks [][]Op }

// Op is one send, receive or computation of a rank.
type Op struct {
	Kind  Kind
	Size  int64       // of a message, bytes; of a Calc ns; 0 or more
	Peer  levels.Rank // of a message
	Tag   int64       // of a message, 0 or more
	After []int32     // ops of the rank that must end first, each before this one in the rank's order
}

// Kind is what an op does. The zero value is invalid.
type Kind uint8

// The kinds.
const (
	_ Kind = iota
	Send
	Recv
	Calc
	maxKind
)

var kindNames = [maxKind]string{Send: "send", Recv: "recv", Calc: "calc"}

// String returns the word in schedules.
func (k Kind) String() string {
	if k == 0 || k >= maxKind {
		return "invalid"
	}
	return kindNames[k]
}

// Format returns the text of a schedule. The same schedule gives the same text.
func (s *Schedule) Format() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "num_ranks %d\n", len(s.Ranks))
	for rank, ops := range s.Ranks {
		fmt.Fprintf(&b, "\nrank %d {\n", rank)
		for i := range ops {
			op := &ops[i]
			switch op.Kind {
			case Send:
				fmt.Fprintf(&b, "l%d: send %db to %d tag %d\n", i+1, op.Size, op.Peer, op.Tag)
			case Recv:
				fmt.Fprintf(&b, "l%d: recv %db from %d tag %d\n", i+1, op.Size, op.Peer, op.Tag)
			default:
				fmt.Fprintf(&b, "l%d: calc %d\n", i+1, op.Size)
			}
			for _, before := range op.After {
				fmt.Fprintf(&b, "l%d requires l%d\n", i+1, before+1)
			}
		}
		b.WriteString("}\n")
	}
	return []byte(b.String())
}
