package viz

import (
	"bytes"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/executor/trace"
)

// Timeline draws step events for a terminal: a row per rank and level, time to
// the right in width columns (at least 1) of equal length. A column shows the
// operation of the task kind that had steps in progress (b for ib, r for ir, R for
// iar; * for several kinds, . for none); waiting for a peer is progress here.
func Timeline(events []trace.Event, width int) []byte {
	width = max(width, 1)
	all := tracks(events)
	if len(all) == 0 {
		return []byte("no events\n")
	}
	begin, end := extent(all)
	column := max(1, (end-begin+int64(width)-1)/int64(width))
	rows := make([][]string, len(all))
	for i := range all {
		t := &all[i]
		rows[i] = []string{fmt.Sprintf("rank %d", t.rank), string(rune(t.level)), string(t.bar(begin, column, width))}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v from %v; a column is %v\n", time.Duration(end-begin), time.Duration(begin), time.Duration(column))
	b.Write(align(rows))
	return b.Bytes()
}

// extent is when the first event begins and the last one ends.
func extent(all []track) (begin, end int64) {
	begin, end = all[0].slices[0].Begin, all[0].slices[0].End
	for _, t := range all {
		begin = min(begin, t.slices[0].Begin)
		for _, s := range t.slices {
			end = max(end, s.End)
		}
	}
	return begin, end
}

func (t *track) bar(begin, column int64, width int) []byte {
	bar := bytes.Repeat([]byte{'.'}, width)
	kinds := make([]string, width)
	for i := range t.slices {
		s := &t.slices[i]
		// An event without length is in one column, even at the very end.
		first := min((s.Begin-begin)/column, int64(width)-1)
		last := max(first, (s.End-1-begin)/column)
		for c := first; c <= last; c++ {
			switch kind := s.kind(); {
			case bar[c] == '.':
				kinds[c], bar[c] = kind, Letter(kind)
			case kinds[c] != kind:
				bar[c] = '*'
			}
		}
	}
	return bar
}

// Letter stands for a task kind in the row of its level: the last of its name,
// as a capital where the operation has two (iar, iag).
func Letter(kind string) byte {
	switch n := len(kind); n {
	case 0:
		return '?'
	case 1, 2:
		return kind[n-1]
	default:
		return kind[n-1] - 'a' + 'A'
	}
}
