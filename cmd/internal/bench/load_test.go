package bench

import (
	"math/rand/v2"
	"testing"
)

// Times are read from the kernel's lines; where it has none, nothing is known.
func TestParseUsage(t *testing.T) {
	const host, process = "cpu  1000 200 30 50000 600 70 8 9 5 0", "7 (a) b) c) R 1 7 7 0 -1 0 1 2 3 4 111 22 0 0 20 0"
	if got, want := parseUsage(host, process), (usage{own: 133, busy: 1239, all: 51917}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, lines := range [][2]string{{"", process}, {host, ""}, {host, "7 (a) R 1"}, {"cpu", process}} {
		if got := parseUsage(lines[0], lines[1]); got != (usage{}) {
			t.Errorf("%q: %+v", lines, got)
		}
	}
}

// Of drawn ranks on drawn hosts, the share of others is what is left of the hosts' time, to a few ticks: however ranks
// share processes and hosts.
func TestOthersShare(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var ranks []usage
		var others, all, slack float64
		for host := range int64(1 + rng.IntN(4)) {
			h := usage{host: host, all: 1000 + rng.Int64N(100_000)}
			left := h.all
			processes := make([]int64, 1+rng.IntN(5))
			for i := range processes {
				processes[i] = rng.Int64N(left + 1)
				left -= processes[i]
				h.busy += processes[i]
				slack += processTicks
			}
			foreign := rng.Int64N(left + 1)
			h.busy += foreign
			others, all, slack = others+float64(foreign), all+float64(h.all), slack+hostTicks
			for i, own := range processes {
				for range 1 + rng.IntN(3) { // ranks of one process
					ranks = append(ranks, usage{host: host, process: int64(i), own: own, busy: h.busy, all: h.all})
				}
			}
		}
		rng.Shuffle(len(ranks), func(i, j int) { ranks[i], ranks[j] = ranks[j], ranks[i] })
		want := max(0, (others-slack)/all)
		if got := othersShare(ranks); got < want-1e-12 || got > want+1e-12 {
			t.Fatalf("%v of %+v, want %v", got, ranks, want)
		}
	}
	if got := othersShare(make([]usage, 4)); got != 0 {
		t.Errorf("of nothing known: %v", got)
	}
	for share, want := range map[float64]string{0: "", 0.1: "", 0.374: "# warning: other programs took 37% of the processors' time meanwhile\n"} {
		if got := othersText(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}

// The kernel's times of this process and of its host go on.
func TestReadUsage(t *testing.T) {
	before := readUsage()
	if before.all == 0 {
		t.Skip("SKIPPED: this kernel tells no processor times")
	}
	x := 0
	var u usage
	for u.own < 2 || u.busy < 1 { // it ends when this process has had its time, however long that takes
		for i := range 1_000_000 {
			x += i
		}
		u = readUsage().since(before)
	}
	if u.host != before.host || u.process != before.process || u.all < u.busy {
		t.Errorf("%+v after %+v; %d", u, before, x%2)
	}
}
