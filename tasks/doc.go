// Package tasks says what a collective has to do: a request, a hierarchy and a
// plan become a graph of tasks, one sub-collective per level and segment.
//
// It never moves data, chooses a plan or knows how a task is done; the same
// input always gives the same graph.
//
//	topo, _ := levels.Parse("4x2")
//	plan, _ := tasks.ParsePlan("shape=han,fs=64KiB,w=4")
//	req := tasks.Request{Coll: tasks.Allreduce, Count: 1 << 20, Type: tasks.Float32, Op: tasks.Sum}
//	g, err := tasks.Expand(req, topo, plan, 0)
//	stages, err := g.Stages() // sr irsr ibirsr sbibirsr …
//
// The tasks are those of "HAN: a Hierarchical AutotuNed Collective Communication
// Framework" (Luo et al., CLUSTER 2020), sections III-A and III-B.
package tasks
