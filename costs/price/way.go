package price

import (
	"cmp"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// way is how a task is done.
type way struct {
	submodules.Traffic
	hand   submodules.Hand
	number int     // the plan's, or else the algorithm's usual one; 0: it takes none
	inner  float64 // of a piece, bytes; 0: messages aren't cut
}

// wayOf returns the way of a plan for a kind of task. It is false where no algorithm does so.
func wayOf(reg submodules.Registry, plan tasks.Plan, kind tasks.Kind) (w way, ok bool) {
	c, _ := plan.For(kind)
	a, ok := reg.Row(c, kind.Op)
	if !ok || c.Inner > 0 && !a.Inner || c.N > 0 && !a.Number.Taken() {
		return w, false
	}
	return way{a.Traffic[kind.Op], a.Handed, cmp.Or(c.N, a.Number.Usual), float64(c.Inner)}, true
}

// goesWhole reports whether a message of n bytes goes in one piece, or its pieces' ways have a form.
func (w *way) goesWhole(n float64) bool {
	return w.inner <= 0 || w.inner >= n || w.Schedule == submodules.CirculantGraph
}

// isParted reports whether an operation's messages have a part for each rank behind them.
func isParted(op tasks.Collective) bool { return op == tasks.Gather || op == tasks.Scatter }
