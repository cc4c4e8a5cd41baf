// Package submodules lowers tasks to steps: the sends, receives, copies and
// reductions of each rank, and their order. An implementation (adapt, sm, …) does it
// for the operations it supports. [Compile] joins the steps of all tasks of one rank
// to its [Program].
//
// Nothing here moves data, opens a link or starts a goroutine. A program names
// regions, never addresses, so the same one runs on goroutines and processes.
//
//	g, _ := tasks.Expand(req, topo, plan, rank)
//	prog, err := submodules.Compile(g, topo.Size(), all.Submodules())
//	for _, s := range prog.Steps() {
//		fmt.Println(prog.Label(s)) // ib#3 send r0>r4 64KiB
//	}
package submodules
