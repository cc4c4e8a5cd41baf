package verdict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
)

// A slow way between two nodes is named with its direction if the other direction is as fast as others, or idle. If both
// are slow no direction is named: either may hold up the other.
func TestDrawnDirections(t *testing.T) {
	const fast = 110e6
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		nodes := make([]string, 3+rnd.IntN(6))
		for n := range nodes {
			nodes[n] = fmt.Sprintf("node%d", n)
		}
		two := rnd.Perm(len(nodes))[:2]
		a, b := two[0], two[1]
		limit := fast / (6 + 50*rnd.Float64())
		back, directed := fast*(0.8+0.4*rnd.Float64()), true
		switch rnd.IntN(3) {
		case 1: // slow too
			back, directed = limit*(0.9+0.2*rnd.Float64()), false
		case 2: // behind what goes the first way
			back, directed = limit*rnd.Float64(), false
		}
		var flows []verdict.Flow
		add := func(from, to int, rate float64) {
			flows = append(flows, verdict.Flow{From: from, To: to, Rate: rate, Moved: rate, Full: true, Busy: 0.5 + 0.5*rnd.Float64()})
		}
		for from := range nodes {
			for to := range nodes {
				switch {
				case from == to:
				case from == a && to == b:
					add(a, b, limit)
				case from == b && to == a:
					if !directed || rnd.IntN(2) == 0 { // it may have nothing to send
						add(b, a, back)
					}
				default:
					add(from, to, fast*(0.8+0.4*rnd.Float64()))
				}
			}
		}
		want := fmt.Sprintf("slow link: the network from %s to %s carries ", nodes[a], nodes[b])
		if !directed {
			want = fmt.Sprintf("slow link: the network between %s and %s carries ", nodes[min(a, b)], nodes[max(a, b)])
		}
		if f := verdict.Bottleneck(flows, nil, nodes, false); f == nil || !strings.HasPrefix(f.String(), want) {
			t.Fatalf("seed %d: %v of %v, want %s…", seed, f, flows, want)
		}
	}
}

// Both ends of a transfer stand: the bytes don't come, or the word that they may. Whoever has waited longer, no direction
// is named.
func TestTransferHasNoDirection(t *testing.T) {
	end := func(rank, peer int, what string, long time.Duration) flight.State {
		return flight.State{Rank: rank, Doing: flight.Inside, Open: []flight.Open{{What: fmt.Sprintf("%s rank %d, tag 5", what, peer), Transfer: true, Awaited: true, Peers: []int{peer}, For: long}}}
	}
	for _, long := range []time.Duration{9 * time.Second, 11 * time.Second} {
		found := verdict.Diagnose([]flight.State{end(0, 1, "send to", 10*time.Second), end(1, 0, "receive from", long)}, verdict.Options{Nodes: []string{"a", "b"}})
		if len(found) != 1 || !strings.HasPrefix(found[0].String(), "slow link: no bytes come between ranks 0 and 1 in a ") || fmt.Sprint(found[0].Ranks) != "[0 1]" {
			t.Errorf("%v", found)
		}
	}
}

// Whatever flows ranks count, in bursts, behind each other and at rates of long ago: what is called slow carries less than
// what it is compared with.
func TestDrawnSlowIsSlower(t *testing.T) {
	blamed := 0
	for seed := range uint64(20_000) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		nodes := make([]string, 2+rnd.IntN(7))
		for n := range nodes {
			nodes[n] = fmt.Sprintf("node%d", n/2)
		}
		drawn := func() (flows []verdict.Flow) {
			for from := range nodes {
				for to := range nodes {
					if nodes[from] == nodes[to] || rnd.IntN(4) == 0 {
						continue
					}
					f := verdict.Flow{From: from, To: to, Rate: math.Exp(10 + 10*rnd.Float64()), Full: rnd.IntN(2) == 0, Busy: rnd.Float64()}
					f.Moved = f.Rate
					if rnd.IntN(2) == 0 {
						f.Moved *= rnd.Float64()
					}
					flows = append(flows, f)
				}
			}
			return flows
		}
		f := verdict.Bottleneck(drawn(), drawn(), nodes, rnd.IntN(3) == 0)
		if f == nil {
			continue
		}
		blamed++
		_, numbers, _ := strings.Cut(f.Text, "carries ")
		var slow, others float64
		if _, err := fmt.Sscanf(numbers, "%g MB/s, others up to %g MB/s", &slow, &others); err != nil || slow >= others {
			t.Fatalf("seed %d: %v, %v", seed, f, err)
		}
	}
	if blamed < 1000 {
		t.Errorf("%d findings: the cases say nothing", blamed)
	}
}
