package adapt

// tree is one rank's place in a tree over relative ranks 0…n−1 with root 0.
// Each child's subtree is a run of ranks right behind what the parent has
// combined so far, so that reducing over children in order keeps rank order.
type tree struct {
	parent   int // -1 at the root
	children []int
}

// chain is 0 → 1 → 2 → ….
func chain(v, n int) tree {
	t := tree{parent: v - 1}
	if v+1 < n {
		t.children = []int{v + 1}
	}
	return t
}

// binomial: v's children are v+1, v+2, v+4, … below v's lowest set bit; the
// subtree of v+2^k is the 2^k ranks from it on.
func binomial(v, n int) tree {
	t := tree{parent: -1}
	for bit := 1; bit < n; bit <<= 1 {
		if v&bit != 0 {
			t.parent = v - bit
			break
		}
		if v+bit < n {
			t.children = append(t.children, v+bit)
		}
	}
	return t
}
