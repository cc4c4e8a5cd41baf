package submodules

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/tasks"
)

// String lists the program, one step a line: its id, label, operands and the
// steps it waits for.
//
//	rank 1: 5 steps, 0B scratch, 128B slots
//	  0 sr#0 copy r1 64B     slot[0:64] = send[0:64]
//	  1 sr#0 notify r1>r0    slot[0:64]               after 0
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d: %d steps, %s scratch, %s slots\n", p.Rank, p.Len(),
		tasks.FormatBytes(p.Scratch), tasks.FormatBytes(p.Slots))
	for id := range dag.ID(p.Len()) {
		s := p.Step(id)
		line := fmt.Sprintf("%3d %-24s %s", id, p.Label(s), s.operands())
		if before := p.Pred(id); len(before) > 0 {
			line = fmt.Sprintf("%-76s after %v", line, strings.Trim(fmt.Sprint(before), "[]"))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// operands is the memory that a step reads and writes.
func (s *Step) operands() string {
	switch s.Kind {
	case SendStep:
		return s.A.String()
	case RecvStep:
		return s.Dst.String()
	case CopyStep:
		return fmt.Sprintf("%v = %v", s.Dst, s.A)
	case ReduceStep:
		return fmt.Sprintf("%v = %v ⊕ %v", s.Dst, s.A, s.B)
	case NotifyStep:
		if s.A.Region != 0 {
			return s.A.String()
		}
	}
	return ""
}
