package peers

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/tasks"
)

// proofTurns are how many turns by rules must be shorter than those without, each of all. If both take
// the same, all turns are won by chance in one cell of 32: a sign test at one in twenty takes as many.
const proofTurns = 5

// unproven returns the cells without a win of the rules over the library as it is in each of the turns. The
// settings begin turns alternately: a drift of the machine helps neither.
func unproven(by setting, c cells, each time.Duration, notes io.Writer, run measurer) (lost []cell, err error) {
	fmt.Fprintf(notes, "# %s: proving rules in %d turns\n", by.library, proofTurns)
	won := map[cell]int{}
	hopes := len(c.ops) * len(c.bytes)
	for turn := 0; turn < proofTurns && hopes > 0; turn++ {
		hopes = 0
		p50 := [2]map[cell]float64{{}, {}}
		for k := range p50 {
			k ^= turn % 2
			rows, err := run([]setting{asItIsOf(by.library), by}[k], c, each)
			if err != nil {
				return nil, err
			}
			for _, row := range rows {
				p50[k][cell{row.Collective, row.Bytes}] = row.P50
			}
		}
		for at, ns := range p50[1] {
			if usual, known := p50[0][at]; known && ns < usual && won[at] == turn {
				won[at]++
				hopes++
			}
		}
	}
	for _, op := range c.ops {
		for _, n := range c.bytes {
			if at := (cell{op, n}); won[at] < proofTurns {
				lost = append(lost, at)
			}
		}
	}
	return lost, nil
}

// leaveOut returns rules that leave some cells to the library's own decision. A cell goes half the way
// to the next measured sizes.
func leaveOut(lost []cell, sizes []int64) string {
	sizes = slices.Sorted(slices.Values(sizes))
	var text strings.Builder
	for _, at := range lost {
		k := slices.Index(sizes, at.bytes)
		var limits []string
		if k > 0 {
			limits = append(limits, "bytes > "+tasks.FormatBytes((sizes[k-1]+at.bytes)/2))
		}
		if k+1 < len(sizes) {
			limits = append(limits, "bytes <= "+tasks.FormatBytes((at.bytes+sizes[k+1])/2))
		}
		if len(limits) == 0 {
			fmt.Fprintf(&text, "%s: default\n", at.op)
			continue
		}
		fmt.Fprintf(&text, "%s: if %s then default\n", at.op, strings.Join(limits, " and "))
	}
	return text.String()
}
