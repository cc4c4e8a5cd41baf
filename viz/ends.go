package viz

import (
	"fmt"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
)

// Ends is the parts of a run before nodes hear of each other, and after that. A call that stands alone
// pays for both: calls back to back hide them in their neighbours.
type Ends struct {
	Messages int           // between nodes, with bytes; 0: the other fields say nothing
	Leaves   time.Duration // from the start until the first of them can be sent
	Arrives  time.Duration // from the start until the last of them is there
	Over     time.Duration // from the start until the last step has ended
}

// Add counts a step. Begin and End must be times since the start.
func (d *Ends) Add(e trace.Event, on *levels.Topology) {
	d.Over = max(d.Over, time.Duration(e.End))
	_, label, _, _, bytes := e.Source.Describe(e.Step)
	from, to, ok := endsOf(label)
	if !ok || bytes == 0 || on.Node(from) == on.Node(to) {
		return
	}
	if e.Rank == to {
		d.Arrives = max(d.Arrives, time.Duration(e.End))
		return
	}
	if d.Messages == 0 || time.Duration(e.Begin) < d.Leaves {
		d.Leaves = time.Duration(e.Begin)
	}
	d.Messages++
}

// endsOf returns the ranks of a message's label, such as ib#3 send r0>r4 64KiB.
func endsOf(label string) (from, to levels.Rank, ok bool) {
	for word := range strings.FieldsSeq(label) {
		if n, _ := fmt.Sscanf(word, "r%d>r%d", &from, &to); n == 2 {
			return from, to, true
		}
	}
	return 0, 0, false
}

// String returns a line, or nothing for a run without messages between nodes.
func (d *Ends) String() string {
	if d.Messages == 0 {
		return ""
	}
	return fmt.Sprintf("between nodes: the first message leaves after %v, the last one is in at %v, the run ends %v later\n",
		d.Leaves, d.Arrives, d.Over-d.Arrives)
}
