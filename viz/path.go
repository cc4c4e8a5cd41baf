package viz

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// PathPiece is a part of the critical path of a run: it held up everything after it. A piece begins when
// the one before it in the path ends.
type PathPiece struct {
	Rank       levels.Rank // its rank; of a message the receiver
	Task       string      // ib#3
	Label      string      // ib#3 send r0>r4 64KiB
	Level      byte        // symbol of the step's level
	Step       int32       // the step's number in the program of its rank; -1: none
	Cause      string      // in a word: copying
	Begin, End int64       // nanoseconds; End >= Begin
}

// PathShares prints the shares of a path: a row for each kind of task, in the order of their
// first pieces, and a column for each cause.
func PathShares(path []PathPiece) []byte {
	var kinds, causes []string
	sums := map[[2]string]int64{}
	total := int64(0)
	for i := range path {
		p := &path[i]
		kind := kindOf(p.Task)
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		if !slices.Contains(causes, p.Cause) {
			causes = append(causes, p.Cause)
		}
		n := p.End - p.Begin
		total += n
		for _, key := range [][2]string{{kind, p.Cause}, {kind, ""}, {"", p.Cause}, {"", ""}} {
			sums[key] += n
		}
	}
	slices.Sort(causes)
	rows := [][]string{append([]string{"", "all"}, causes...)}
	for _, kind := range append(kinds, "") {
		row := []string{cmp.Or(kind, "all")}
		for _, cause := range append([]string{""}, causes...) {
			row = append(row, percent(sums[[2]string{kind, cause}], total))
		}
		rows = append(rows, row)
	}
	return align(rows)
}

// percent returns a part of a whole, empty for none.
func percent(part, whole int64) string {
	if part == 0 || whole == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// PathText lists a path from its start: a line for each step on a rank, with its causes and
// their times. Of more than most lines the longest are listed, and the last line counts the
// others; most 0: all.
func PathText(path []PathPiece, most int) []byte {
	if len(path) == 0 {
		return []byte("no critical path\n")
	}
	all := stretches(path)
	shown := all
	if most > 0 && len(all) > most {
		shown = slices.Clone(all)
		slices.SortStableFunc(shown, func(a, b []PathPiece) int { return cmp.Compare(length(b), length(a)) })
		shown = shown[:most]
		slices.SortStableFunc(shown, func(a, b []PathPiece) int { return cmp.Compare(a[0].Begin, b[0].Begin) })
	}
	rows := make([][]string, len(shown))
	left := length(path)
	for i, s := range shown {
		rows[i] = []string{time.Duration(s[0].Begin).String(), time.Duration(length(s)).String(), fmt.Sprintf("rank %d", s[0].Rank), s[0].Label, causesText(s)}
		left -= length(s)
	}
	var b bytes.Buffer
	b.Write(align(rows))
	if n := len(all) - len(shown); n > 0 {
		fmt.Fprintf(&b, "and %d more, %v together\n", n, time.Duration(left))
	}
	return b.Bytes()
}

// stretches cuts a path at changes of the step or the rank.
func stretches(path []PathPiece) (all [][]PathPiece) {
	from := 0
	for i := 1; i <= len(path); i++ {
		if i == len(path) || path[i].Rank != path[from].Rank || path[i].Label != path[from].Label {
			all = append(all, path[from:i])
			from = i
		}
	}
	return all
}

// length returns how long a path takes, ns.
func length(path []PathPiece) int64 { return path[len(path)-1].End - path[0].Begin }

// causesText lists the causes of a stretch, each with its time: sending 131µs, latency 1µs.
func causesText(s []PathPiece) string {
	var parts []string
	for i := 0; i < len(s); {
		n, cause := int64(0), s[i].Cause
		for ; i < len(s) && s[i].Cause == cause; i++ {
			n += s[i].End - s[i].Begin
		}
		parts = append(parts, fmt.Sprintf("%s %v", cause, time.Duration(n)))
	}
	return strings.Join(parts, ", ")
}
