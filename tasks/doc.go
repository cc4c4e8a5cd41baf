// Package tasks expands collectives: a request, a hierarchy and a plan become a graph
// of tasks, one sub-collective per level and segment.
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
// # Plans
//
// A plan is words separated by commas:
//
//	shape=han,fs=512KiB,w=4,i=adapt/chain/32KiB,s=sm
//
//	shape=han            the expansion, one of those below
//	fs=512KiB            segment size, of each rank's block where there are blocks; all: one segment
//	w=4                  window: segments in flight per kind of task
//	i=adapt/chain/32KiB  level i is done by submodule adapt, algorithm chain, inner segments of 32 KiB
//	i=nbc/bruck//4       the same with the algorithm's own number 4, here a radix, and no inner segment
//	s=sm                 level s is done by submodule sm with its first algorithm
//	ib=adapt/binomial    the same for one kind of task; it wins over the level's choice
//	eager=32KiB          alltoalls by adapt/pairwise: messages up to it leave at once, longer ones one after the other
//	order=tree           reductions give the same bits on every layout
//
// These are the shapes, with the tasks of an allreduce (or bcast) on two levels:
//
//	flat          all collectives     ir ib         one group of all ranks, which knows no nodes
//	han           all collectives     sr ir ib sb   segments flow through the levels
//	han-lockstep  all collectives     sr ir ib sb   in stages, as the paper does it
//	rotate        allreduce           sr ir ib sb   each segment has another root between nodes
//	ar            allreduce, barrier  sr iar sb     one allreduce between nodes
//	rsag          allreduce           sr irs iag sb reduce-scatter and allgather between nodes
//	lanes         allreduce           srs iar sag   every rank of a node takes a shard between nodes
//	lanes         alltoall            sa ia         every rank of a node sends to its share of all others
//	sag           bcast               is iag sb     scatter and allgather between nodes
//	flat-ar       allreduce, barrier  iar           one allreduce of all ranks
//	flat-rsag     allreduce           irs iag       reduce-scatter and allgather of all ranks
//	flat-sag      bcast               is iag        scatter and allgather of all ranks
//
// Several plans are separated by semicolons, and a collective's name in front limits
// a plan to it; later words win ([ParseForced]):
//
//	fs=128KiB;allreduce:shape=flat,i=adapt/binomial
//
// A shape in a plan for all collectives holds for those that have the shape. A choice for a
// level holds for the collectives with a task there that the algorithm can do: i=adapt/chain
// leaves a gather as it was. With the collective in front, gather:i=adapt/chain is an error and
// lists the possible algorithms.
//
// The tasks are those of "HAN: a Hierarchical AutotuNed Collective Communication
// Framework" (Luo et al., CLUSTER 2020), sections III-A and III-B.
package tasks
