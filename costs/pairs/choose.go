package pairs

import (
	"math/bits"

	"github.com/tierflow/tierflow/levels"
)

// At returns pairs of ranks with a common domain of level k and none inside it: at most as many as
// the number of such domains has binary digits. No rank is in two pairs. Some are near and some
// far. The first of a pair leads.
func At(t *levels.Topology, k int) (all [][2]int) {
	heads, last := map[int32]int{}, []int32{}
	for r := range t.Size() {
		d := int32(r) // a domain inside
		if k > 0 {
			d = t.Domain(levels.Rank(r), k-1)
		}
		if _, ok := heads[d]; !ok && t.Domain(levels.Rank(r), k) == t.Domain(0, k) {
			heads[d], last = r, append(last, d)
		}
	}
	for i := range min(len(last)/2, bits.Len(uint(len(last)-1))) {
		all = append(all, [2]int{heads[last[i]], heads[last[len(last)-1-i]]})
	}
	return all
}
