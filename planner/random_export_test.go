package planner

import "io"

// Dump writes what the ranks of this process wait for.
func (c *Comm) Dump(out io.Writer) { c.world.Dump(out) }
