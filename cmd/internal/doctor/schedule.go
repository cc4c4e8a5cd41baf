package doctor

// pair is two ranks measuring each other. a < b.
type pair struct{ a, b int }

// waves returns all pairs of n ranks, those of a wave at the same time. In a wave no
// rank is in two pairs, and on a node with room for k ranks at most k are in one; a
// pair inside a node is there in any case. node and room are by rank and by node.
func waves(n int, node func(rank int) int, room func(node int) int) [][]pair {
	var all [][]pair
	for _, round := range rounds(n) {
		for len(round) > 0 {
			used := map[int]int{}
			var wave, rest []pair
			for _, p := range round {
				from, to := node(p.a), node(p.b)
				if fits(used[from], room(from)) && fits(used[to], room(to)) {
					used[from]++
					used[to]++
					wave = append(wave, p)
				} else {
					rest = append(rest, p)
				}
			}
			all = append(all, wave)
			round = rest
		}
	}
	return all
}

// fits reports whether a node with some busy ranks has room for a pair's.
func fits(busy, room int) bool { return busy == 0 || busy+2 <= room }

// rounds returns a tournament: in each round every rank has one partner, or none if n
// is odd.
func rounds(n int) [][]pair {
	places := n + n%2 // with an odd n the last place is empty
	var all [][]pair
	for r := range places - 1 {
		var round []pair
		add := func(a, b int) {
			if a < n && b < n {
				round = append(round, pair{min(a, b), max(a, b)})
			}
		}
		add(places-1, r)
		for i := 1; i < places/2; i++ {
			add((r+i)%(places-1), (r-i+places-1)%(places-1))
		}
		all = append(all, round)
	}
	return all
}
