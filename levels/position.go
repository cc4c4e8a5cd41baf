package levels

import "fmt"

// position says where the parts of a topology were given, for errors; the zero
// value says nothing.
type position struct {
	file          string
	whole         int   // line that the topology begins on
	levels, ranks []int // line of each
}

// level and rank are the beginning of an error about one of them, or about all of
// them if the index is negative.
func (p position) level(k int) string { return p.prefix(p.levels, k) }
func (p position) rank(r int) string  { return p.prefix(p.ranks, r) }

func (p position) prefix(lines []int, i int) string {
	switch {
	case p.file == "":
		return ""
	case i < 0:
		return fmt.Sprintf("%s:%d: ", p.file, p.whole)
	}
	return fmt.Sprintf("%s:%d: ", p.file, lines[i])
}
