package submodules

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/tasks"
)

// Precede adds the work of a Prefix task on this rank for n bytes from off: it puts prefix
// before the values here, in other memory. It returns the steps.
func (c *Call) Precede(e *Emitter, prefix tasks.Span, off, n int64, after ...dag.ID) (steps []dag.ID) {
	below, through := c.Scan.Below.Cut(off, n), c.Scan.Through.Cut(off, n)
	switch {
	case below.Region == 0:
	case !c.Scan.Fresh:
		steps = append(steps, e.Reduce(below, prefix, below, after...))
	case below != prefix:
		steps = append(steps, e.Copy(below, prefix, after...))
	}
	if through.Region != 0 {
		steps = append(steps, e.Reduce(through, prefix, through, after...))
	}
	return steps
}

// ArrivesBelow reports whether the values before this rank may arrive at their final place: they are
// wanted, and nothing needed is there.
func (c *Call) ArrivesBelow() bool {
	if c.Kind.Op == tasks.Prefix {
		return c.Scan.Fresh && c.Scan.Below.Region != 0
	}
	return c.Scan.Below.Region != 0 && c.Scan.Below != c.Src
}
