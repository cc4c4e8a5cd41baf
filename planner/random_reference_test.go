package planner_test

import "github.com/tierflow/tierflow/tasks"

// What collectives give, in plain Go, from the input of all ranks.

// block is the count of a rank's block, or of its buffer.
func (r *randomRequest) block(rank int) int {
	if r.counts != nil {
		return r.counts[rank]
	}
	return r.count
}

// before is where a rank's block begins in a buffer of blocks.
func (r *randomRequest) before(rank int) (n int) {
	for i := range rank {
		n += r.block(i)
	}
	return n
}

// sum is the length of a buffer of all blocks.
func (r *randomRequest) sum(size int) int { return r.before(size) }

// gives is what a rank gives the first ranks of an alltoallv.
func (r *randomRequest) gives(from, ranks int) (n int) {
	for _, c := range r.rows[from][:ranks] {
		n += c
	}
	return n
}

// gets is what a rank gets in an alltoallv.
func (r *randomRequest) gets(to int) (n int) {
	for _, row := range r.rows {
		n += row[to]
	}
	return n
}

// want is element i of what this rank receives.
func (a *activeCall[T]) want(i int) T {
	switch a.r.coll {
	case tasks.Bcast:
		return a.given(a.r.root, i)
	case tasks.Allreduce, tasks.Reduce:
		return a.combined(a.p.size(), i)
	case tasks.ReduceScatter:
		return a.combined(a.p.size(), a.r.before(a.p.me)+i)
	case tasks.Scan:
		return a.combined(a.p.me+1, i)
	case tasks.Exscan:
		return a.combined(a.p.me, i)
	case tasks.Alltoall:
		if a.r.rows != nil {
			from := 0
			for i >= a.r.rows[from][a.p.me] {
				i -= a.r.rows[from][a.p.me]
				from++
			}
			return a.given(from, a.r.gives(from, a.p.me)+i)
		}
		return a.given(i/a.r.count, a.p.me*a.r.count+i%a.r.count)
	case tasks.Scatter:
		return a.given(a.r.root, a.r.before(a.p.me)+i)
	}
	from := 0 // of a gather or an allgather
	for i >= a.r.block(from) {
		i -= a.r.block(from)
		from++
	}
	return a.given(from, i)
}

// combined is element i of the first ranks' input, in the order of ranks.
func (a *activeCall[T]) combined(size, i int) T {
	sum := a.given(0, i)
	for rank := 1; rank < size; rank++ {
		sum = a.op.fold(sum, a.given(rank, i))
	}
	if a.op.finish != nil {
		sum = a.op.finish(sum, size)
	}
	return sum
}
