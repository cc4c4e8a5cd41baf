package fixed

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// HAN's defaults.
const (
	hanSegment   = 64 << 10 // of a bcast, reduce or allreduce, bytes
	fewSpokes    = 4        // ranks: up to here libnbc's bcast is linear
	chainMessage = 64 << 10 // bytes: from here on libnbc's reduce between so few is a chain
	chainPiece   = 8 << 10  // of that chain, bytes
)

// han is Open MPI's HAN: two levels, and libnbc between nodes for segments. Tuned
// decides on one node, with one rank a node or unequal numbers, and for collectives
// missing in HAN.
func han(q *question) Decision {
	op := q.request.Coll
	if q.nodes == 1 || q.ranks == q.nodes || !q.even || op == tasks.ReduceScatter || op == tasks.Alltoall {
		d := decideTuned(q)
		d.Theirs = "HAN leaves it to " + d.Theirs
		return d
	}
	switch op {
	case tasks.Bcast, tasks.Reduce, tasks.Allreduce:
		return q.decidePipelined()
	default:
		return q.oneByOne()
	}
}

// decidePipelined decides as HAN does with segments: while one is between nodes another one is in them,
// and a stage ends before the next begins.
func (q *question) decidePipelined() Decision {
	d := Decision{Theirs: "HAN's pipeline of 64 KiB, libnbc between nodes, tuned in them"}
	d.Plan = tasks.Plan{Shape: tasks.HanLockstep, Segment: hanSegment, Window: window}
	bytes := min(q.bytes, hanSegment)
	count := bytes / int64(max(1, q.request.Type.Size()))
	if q.request.Coll != tasks.Bcast {
		d.Plan = on(d.Plan, q.between, tasks.Reduce, reduceBetween(q.nodes, bytes, count))
		d.inside(q, tasks.Reduce, bytes, count)
	}
	if q.request.Coll != tasks.Reduce {
		c := nbc(submodules.Binomial)
		if q.nodes <= fewSpokes {
			c = nbc(submodules.Linear)
		}
		d.Plan = on(d.Plan, q.between, tasks.Bcast, c)
		d.inside(q, tasks.Bcast, bytes, count)
	}
	return d
}

// reduceBetween is the choice of nbc_ireduce.c.
func reduceBetween(ranks int, bytes, count int64) tasks.Choice {
	switch {
	case ranks > 2 && count >= powerBelow(ranks):
		return nbc(submodules.Rabenseifner)
	case ranks > fewSpokes || bytes < chainMessage:
		return nbc(submodules.Binomial)
	}
	c := nbc(submodules.Chain)
	c.Inner = chainPiece
	return c
}

// oneByOne is HAN's way with blocks: one level after the other, each by tuned. Where it asks
// for libnbc between nodes it gets tuned, since libnbc has no blocking collectives.
func (q *question) oneByOne() Decision {
	d := Decision{Theirs: "HAN, tuned between nodes and in them", Plan: q.plan(tasks.Han)}
	op, of := q.request.Coll, int64(q.most)
	c, differs := inTree(op, q.nodes, q.bytes*of, q.request.Count*of)
	d.Plan, d.Closest = on(d.Plan, q.between, op, c), differs
	if op != tasks.Allgather {
		d.inside(q, op, q.bytes, q.request.Count)
		return d
	}
	d.inside(q, tasks.Gather, q.bytes, q.request.Count)
	d.inside(q, tasks.Bcast, q.bytes*int64(q.ranks), q.request.Count*int64(q.ranks))
	return d
}

// inside chooses for an operation in nodes, by tuned.
func (d *Decision) inside(q *question, op tasks.Collective, bytes, count int64) {
	c, differs := inTree(op, q.most, bytes, count)
	if d.Plan = on(d.Plan, q.inside, op, c); differs != "" {
		d.Closest = differs
	}
}
