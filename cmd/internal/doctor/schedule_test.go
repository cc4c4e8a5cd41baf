package doctor

import "testing"

// Every pair comes once, and in no wave a rank twice or a node beyond its room.
func TestWaves(t *testing.T) {
	for n := range 34 {
		for _, perNode := range []int{1, 2, 3, 8, 40} {
			for _, cpus := range []int{0, 1, 2, 3, 4, 64} {
				seen := map[pair]bool{}
				node := func(r int) int { return r / perNode }
				for _, wave := range waves(n, node, func(int) int { return cpus }) {
					busy, used := map[int]bool{}, map[int]int{}
					if len(wave) == 0 {
						t.Fatalf("%d ranks: a wave of nothing", n)
					}
					for _, p := range wave {
						if seen[p] || p.a >= p.b || p.a < 0 || p.b >= n || busy[p.a] || busy[p.b] {
							t.Fatalf("%d ranks, %d on a node, %d CPUs: pair %v in wave %v", n, perNode, cpus, p, wave)
						}
						seen[p], busy[p.a], busy[p.b] = true, true, true
						used[node(p.a)]++
						used[node(p.b)]++
					}
					for _, k := range used {
						if k > max(cpus, 2) {
							t.Fatalf("%d ranks, %d on a node: %d of them measure on %d CPUs", n, perNode, k, cpus)
						}
					}
				}
				if len(seen) != n*(n-1)/2 {
					t.Fatalf("%d ranks: %d pairs", n, len(seen))
				}
			}
		}
	}
}

// With CPUs for all a job of n ranks takes as few waves as a tournament.
func TestFewWaves(t *testing.T) {
	if n := len(waves(16, func(int) int { return 0 }, func(int) int { return 16 })); n != 15 {
		t.Errorf("%d waves of 16 ranks on 16 CPUs; want 15", n)
	}
}
