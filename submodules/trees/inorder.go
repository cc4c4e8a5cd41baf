package trees

// InOrder returns place v of an in-order binary tree: the places left of v come
// before v, those right of v after it. Combining left, own, right keeps the order of
// places. [Top] returns the place at the top. A left child's tree is as large as the
// right one's or larger.
//
//	      4
//	  ┌───┴───┐
//	  2       6
//	┌─┴─┐   ┌─┴─┐
//	1   3   5   7
//	│
//	0
func InOrder(v, n int) Place {
	parent, lo, hi := -1, 0, n
	for {
		top := lo + Top(hi-lo)
		switch {
		case v < top:
			hi = top
		case v > top:
			lo = top + 1
		default:
			p := Place{Parent: parent, End: hi}
			if lo < v {
				p.Children = append(p.Children, lo+Top(v-lo))
			}
			if v+1 < hi {
				p.Children = append(p.Children, v+1+Top(hi-v-1))
			}
			return p
		}
		parent = top
	}
}

// Top is the root of an [InOrder] tree of n places.
func Top(n int) int { return n / 2 }
