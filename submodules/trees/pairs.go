package trees

// Rounds returns in how many rounds n places can meet each other place once, one a round.
func Rounds(n int) int { return n - 1 + n%2 }

// Partner returns whom a place meets in a round, -1 if it rests: with an odd number one
// place rests in every round. Whoever is a place's partner has that place as its own. It
// is the circle of a tournament: in round k meet those whose places add up to k.
//
//	n = 4     round 0   0 3   1 2
//	          round 1   0 1   2 3
//	          round 2   0 2   1 3
func Partner(place, n, round int) int {
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
