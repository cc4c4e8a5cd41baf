package sim

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// An idle wire lets a burst pass in no time. From then on it carries at most a burst more than its rate
// allows.
func TestBursts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		l := linkPrice{burst: Time(random.Int64N(1000))}
		w := &wire{}
		now, carried := Time(0), Time(0)
		for range 50 {
			now += Time(random.Int64N(300))
			whole := Time(1 + random.Int64N(400))
			takes := l.pass(w, now, whole)
			if takes < 0 || takes > whole || takes < whole-l.burst {
				t.Fatalf("%d ps of the wire take %d with a burst of %d", whole, takes, l.burst)
			}
			w.free = max(w.free, now) + whole
			now += takes
			if carried += whole; carried > now+l.burst {
				t.Fatalf("%d ps carried at %d with a burst of %d", carried, now, l.burst)
			}
		}
	}
	idle := linkPrice{burst: 500}
	if got := idle.pass(&wire{}, 1000, 300); got != 0 {
		t.Errorf("an idle wire takes %v for less than a burst", got)
	}
	if got := idle.pass(&wire{free: 1000}, 1000, 300); got != 0 {
		t.Errorf("a wire just done takes %v for less than a burst", got)
	}
	if got := idle.pass(&wire{free: 1500}, 1000, 300); got != 300 {
		t.Errorf("a wire whose burst is used up takes %v, want 300", got)
	}
}

// Packets add their bytes, and a message is on the wire for no less than its payload.
func TestOnWire(t *testing.T) {
	for _, test := range []struct {
		link linkPrice
		n    int64
		want Time
	}{
		{linkPrice{}, 1000, 0},
		{linkPrice{gap: 5}, 1000, 5},
		{linkPrice{wireByte: 2}, 1000, 2000},
		{linkPrice{wireByte: 2, message: 10}, 1000, 2020},
		{linkPrice{wireByte: 2, message: 10, packet: 1000, extra: 66}, 990, 2132},
		{linkPrice{wireByte: 2, message: 10, packet: 1000, extra: 66}, 991, 2266}, // a byte in a second packet
		{linkPrice{wireByte: 2, packet: 1000, extra: 66, gap: 7}, 0, 7},
	} {
		if got := test.link.onWire(test.n); got != test.want {
			t.Errorf("%+v: %d bytes take %d, want %d", test.link, test.n, got, test.want)
		}
	}
	l := linkPrice{packet: 1448}
	for _, n := range []int64{0, 1, 1448, 1449, 1 << 20} {
		if got := l.head(n); got != min(n, 1448) {
			t.Errorf("the first packet of %d bytes has %d", n, got)
		}
		if got := (&linkPrice{}).head(n); got != n {
			t.Errorf("without packets the first part of %d bytes has %d", n, got)
		}
	}
}

// Times are rounded to the nearest picosecond.
func TestRates(t *testing.T) {
	for _, test := range []struct {
		at   rate
		n    int64
		want Time
	}{{0, 1 << 40, 0}, {0.4, 1, 0}, {0.5, 1, 1}, {0.1, 4, 0}, {0.1, 5, 1}, {800, 1 << 20, 838860800}, {1e6, 1, 1e6}} {
		if got := test.at.of(test.n); got != test.want {
			t.Errorf("%d bytes at %v ps take %d, want %d", test.n, float64(test.at), got, test.want)
		}
	}
	if got := nanoseconds(1.2346); got != 1235 || got.Nanoseconds() != 1.235 {
		t.Errorf("1.2346 ns are %d ps, %v ns", got, got.Nanoseconds())
	}
	if got := (2*Second + 3*Nanosecond + 999).Duration(); got != 2_000_000_003 {
		t.Errorf("a time is cut to %v", got)
	}
}

// scale agrees with exact integers, as long as their result is a time.
func TestScale(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	for range 10_000 {
		draw := func() Time { return Time(random.Int64N(1 << (1 + random.IntN(62)))) }
		a, of, by := draw(), draw(), draw()+1
		want := new(big.Int).Div(new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(int64(of))), big.NewInt(int64(by)))
		if !want.IsInt64() {
			want = big.NewInt(math.MaxInt64)
		}
		if got := scale(a, of, by); int64(got) != want.Int64() {
			t.Fatalf("%d·%d/%d is %d, want %v", a, of, by, got, want)
		}
	}
}

// All ranks start, in an order of the seed, not in that of their numbers.
func TestStartOrder(t *testing.T) {
	seen := map[int32]int{} // by first rank
	for seed := range uint64(64) {
		order := startOrder(100, seed)
		if again := startOrder(100, seed); !slices.Equal(order, again) {
			t.Errorf("seed %d: %v, then %v", seed, order, again)
		}
		seen[order[0]]++
		if slices.IsSorted(order) {
			t.Errorf("seed %d starts ranks by their numbers", seed)
		}
		slices.Sort(order)
		for i, rank := range order {
			if rank != int32(i) {
				t.Fatalf("seed %d: not each rank once: %v", seed, order)
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("64 seeds start with %d different ranks", len(seen))
	}
}

// Messages come out of a list in order, and places of dropped ones are used again.
func TestMessageLists(t *testing.T) {
	e := &engine{free: -1}
	random := rand.New(rand.NewPCG(3, 3))
	l := list{-1, -1}
	var want []int64
	next, most := int64(0), 0
	for range 5000 {
		if len(want) == 0 || random.IntN(2) == 0 {
			i := e.allocMessage()
			e.messages[i] = message{bytes: next}
			e.appendMessage(&l, i)
			want, next = append(want, next), next+1
			most = max(most, len(want))
			continue
		}
		i := l.first
		if e.messages[i].bytes != want[0] {
			t.Fatalf("message %d comes, want %d", e.messages[i].bytes, want[0])
		}
		l.first, want = e.messages[i].next, want[1:]
		e.dropMessage(i)
	}
	if len(e.messages) != most {
		t.Errorf("room for %d messages, at most %d were in use", len(e.messages), most)
	}
}

// A rank seen from its peer's stand-in, moved back by the peer's part, is the rank again.
func TestSymmetry(t *testing.T) {
	for _, s := range []symmetry{{5, 3, false}, {8, 2, false}, {8, 2, true}, {4, 6, true}} {
		size := s.parts * s.ranks
		for peer := range size {
			if home := s.homesOf([]int32{peer})[0]; home != peer%s.ranks {
				t.Errorf("%+v: rank %d is simulated by %d", s, peer, home)
			}
			for b := range s.parts {
				to := s.movePeer(peer, b)
				if to < 0 || to >= size || to%s.ranks != peer%s.ranks || b == 0 && to != peer {
					t.Errorf("%+v: peer %d of the first part is %d of part %d", s, peer, to, b)
				}
			}
			for rank := range s.ranks { // peer's stand-in sees rank as far away as peer is from it
				seen, b := s.seen(rank, peer), peer/s.ranks
				if back := s.movePeer(seen, b); back != rank {
					t.Errorf("%+v: rank %d is %d to the stand-in of %d, from there %d", s, rank, seen, peer, back)
				}
			}
		}
	}
	var none symmetry
	if none.times() != 1 || none.seen(3, 9) != 3 || !slices.Equal(none.homesOf([]int32{4, 9}), []int32{4, 9}) {
		t.Error("without equal parts ranks stand for others")
	}
}

// A machine may lack a link that no message uses, and no other.
func TestUsedLinks(t *testing.T) {
	for _, test := range []struct {
		topo  string
		level int
		used  bool
	}{{"4x1", 0, false}, {"4x1", 1, true}, {"1x4", 0, true}, {"1x4", 1, false}, {"2x2x2", 1, true}, {"2x1x2", 1, false}} {
		on := tasktest.Topology(t, test.topo)
		if got := on.IsUsed(test.level); got != test.used {
			t.Errorf("%s: level %d is used: %t", test.topo, test.level, got)
		}
		m := machine.Assumed()
		m.Links = slices.DeleteFunc(m.Links, func(l machine.Link) bool { return byte(l.Level) == on.Level(test.level).Symbol })
		if _, err := pricesOf(m, on, 0); (err != nil) != test.used && on.Depth() == 2 { // of three levels the innermost one has the node's link
			t.Errorf("%s without link %v: %v", test.topo, on.Level(test.level), err)
		}
	}
}

// Noise only makes things longer: by the machine's share on average, and by twice that at most.
func TestNoiseOfWork(t *testing.T) {
	const noise, whole, count = 0.2, Time(1e6), 20_000
	e := &engine{prices: prices{noise: 2 * noise}, random: 5}
	sum := Time(0)
	for range count {
		d := e.addNoise(whole)
		if d < whole || float64(d) > (1+2*noise)*float64(whole)+1 {
			t.Fatalf("%v takes %v", whole, d)
		}
		sum += d - whole
	}
	if mean := float64(sum) / count / float64(whole); math.Abs(mean-noise) > 0.01 {
		t.Errorf("noise of %.3f on average, want %v", mean, noise)
	}
	quiet := &engine{}
	if d := quiet.addNoise(whole); d != whole || quiet.random != 0 {
		t.Errorf("without noise %v take %v", whole, d)
	}
}
