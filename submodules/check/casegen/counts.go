package casegen

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// differ draws counts of up to most elements for each rank, many of them 0.
func differ(s Source, size, most int) (tasks.Counts, int64) {
	counts := make([]int, size)
	for i := range counts {
		counts[i] = max(0, s.IntN(most+2)-1)
	}
	return countsOf(counts)
}

func countsOf(list []int) (tasks.Counts, int64) {
	c, err := tasks.NewCounts(list)
	if err != nil {
		panic(fmt.Sprintf("casegen: impossible counts: %v", err))
	}
	return c, c.Max()
}

// differByPair draws counts of up to most elements for each pair of ranks: many are 0, and
// so may be all of a rank's. In place those of a pair are the same both ways.
func differByPair(s Source, size, most int, inPlace bool) (tasks.Matrix, int64) {
	rows := make([][]int, size)
	for from := range rows {
		rows[from] = make([]int, size)
		idle := s.IntN(5) == 0
		for to := range rows {
			if !idle {
				rows[from][to] = max(0, s.IntN(most+2)-1)
			}
			if inPlace && to < from {
				rows[from][to] = rows[to][from]
			}
		}
	}
	if s.IntN(4) == 0 { // one block is much larger than the others
		from, to := s.IntN(size), s.IntN(size)
		rows[from][to] = 100 * most
		if inPlace {
			rows[to][from] = 100 * most
		}
	}
	return matrixOf(rows)
}

func matrixOf(rows [][]int) (tasks.Matrix, int64) {
	m, err := tasks.NewMatrix(rows)
	if err != nil {
		panic(fmt.Sprintf("casegen: impossible counts: %v", err))
	}
	if m.Max() == 0 { // as the planner does it
		return tasks.Matrix{}, 0
	}
	return m, m.Max()
}

// restrict leaves the counts of some ranks in a request.
func restrict(r *tasks.Request, ranks []levels.Rank) {
	if !r.Matrix.IsZero() {
		rows := make([][]int, len(ranks))
		for i, from := range ranks {
			for _, to := range ranks {
				rows[i] = append(rows[i], int(r.Matrix.At(int(from), int(to))))
			}
		}
		r.Matrix, r.Count = matrixOf(rows)
	}
	if r.Counts.Len() == 0 {
		return
	}
	counts := make([]int, len(ranks))
	for i, rank := range ranks {
		counts[i] = int(r.Counts.At(int(rank)))
	}
	r.Counts, r.Count = countsOf(counts)
}
