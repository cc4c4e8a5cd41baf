package trees

// Rounds returns in how many rounds n places can meet each other place once, one a round.
func Rounds(n int) int { return n - 1 + n%2 }

// Partner returns the place that a place meets in a round, -1 if it rests: of an odd number one
// place rests in every round. The partner's partner is the place itself.
//
// Places are blocks of equal size, an odd number or twice one; their number is a power of two.
// In the first rounds block b meets block b xor 1, in as many rounds as a block has places, then
// b xor 2, and so on. So every block meets the others alike, and so does every node of whole
// blocks. Last, the places of a block meet each other. Between two blocks, and inside a block,
// it is the circle of a tournament: in round k two places meet if they add up to k.
//
//	n = 4     round 0   0 2   1 3
//	          round 1   0 3   1 2
//	          round 2   0 1   2 3
func Partner(place, n, round int) int {
	size := n // of a block
	for size%4 == 0 {
		size /= 2
	}
	blocks := n / size
	block, inside := place/size, place%size
	if far := round/size + 1; far < blocks {
		return (block^far)*size + (round%size-inside+size)%size
	}
	partner := circlePartner(inside, size, round-(blocks-1)*size)
	if partner < 0 {
		return -1
	}
	return block*size + partner
}

// circlePartner is Partner of n places in one circle.
func circlePartner(place, n, round int) int {
	circle := Rounds(n)
	if place == circle { // the last of an even number stands in the middle
		if round%2 == 1 {
			round += circle
		}
		return round / 2
	}
	other := (round - place + circle) % circle
	switch {
	case other != place:
		return other
	case n%2 == 0:
		return circle
	}
	return -1
}
