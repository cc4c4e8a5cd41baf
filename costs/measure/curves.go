package measure

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
)

// Curve is how long messages of several sizes take between ranks of a level.
type Curve struct {
	Level  machine.Symbol `json:"level"`
	Way    Way            `json:"way"`
	Pairs  int            `json:"pairs"` // of ranks, all speaking at the same time
	Points []Point        `json:"points"`
}

// Point is one size.
type Point struct {
	Bytes    int64         `json:"bytes"`
	Messages int           `json:"messages"`     // of each pair and direction, in a sample
	Sample   costs.Summary `json:"sample"`       // the slowest rank's time for all of them
	NS       float64       `json:"ns"`           // of one message: the median of samples
	Half     float64       `json:"half_ns"`      // half the width of the 95% confidence interval of the mean
	Modelled float64       `json:"modelled_ns"`  // the same by the machine's numbers
	Rate     float64       `json:"gbytes_per_s"` // all bytes of all pairs and directions by time, 1e9 bytes per second
	OldRate  float64       `json:"gbps"`         // deprecated name of Rate, though it is no bits: the next version goes without
}

// Way is how the messages of a curve go. The zero value is invalid.
type Way uint8

// The ways.
const (
	_        Way = iota
	Turns        // there and back again: half of a round trip
	OneWay       // one after the other in one direction
	BothWays     // the same in both directions at once
	maxWay
)

var wayNames = [maxWay]string{Turns: "turns", OneWay: "one way", BothWays: "both ways"}

// String returns the way's name.
func (w Way) String() string {
	if w == 0 || w >= maxWay {
		return "invalid"
	}
	return wayNames[w]
}

// MarshalText returns the way's name.
func (w Way) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads a way's name.
func (w *Way) UnmarshalText(text []byte) error {
	for *w = 1; *w < maxWay; *w++ {
		if wayNames[*w] == string(text) {
			return nil
		}
	}
	return fmt.Errorf("way %q is not known", text)
}

// partners returns pairs of ranks with a common domain of level k and none inside it: at the
// innermost level two ranks of a domain each, at others all pairs of the ranks of two domains. None
// if the topology has no such ranks.
func partners(t *levels.Topology, k int) (all []pair) {
	for a := range levels.Rank(t.Size()) {
		for b := a + 1; int(b) < t.Size(); b++ {
			switch {
			case t.Meet(a, b) != k:
			case k == 0:
				return pairsInside(t, a)
			default:
				return pairsOf(t, k-1, a, b)
			}
		}
	}
	return nil
}

// everybody returns pairs of ranks with a common domain of level k and none inside it. No rank is
// in two of them, and no further pair is possible.
func everybody(t *levels.Topology, k int) (all []pair) {
	taken := map[levels.Rank]bool{}
	for a := range levels.Rank(t.Size()) {
		for b := a + 1; int(b) < t.Size() && !taken[a]; b++ {
			if !taken[b] && t.Meet(a, b) == k {
				all = append(all, pair{a, b})
				taken[a], taken[b] = true, true
			}
		}
	}
	return all
}

// pairsOf pairs the ranks of the domains of a and b at a level.
func pairsOf(t *levels.Topology, k int, a, b levels.Rank) (all []pair) {
	as, bs := members(t, k, a), members(t, k, b)
	for i := range min(len(as), len(bs)) {
		all = append(all, pair{as[i], bs[i]})
	}
	return all
}

// pairsInside pairs the ranks of a's innermost domain.
func pairsInside(t *levels.Topology, a levels.Rank) (all []pair) {
	ranks := members(t, 0, a)
	for i := 0; i+1 < len(ranks); i += 2 {
		all = append(all, pair{ranks[i], ranks[i+1]})
	}
	return all
}

// members returns the ranks of a's domain at a level.
func members(t *levels.Topology, k int, a levels.Rank) (all []levels.Rank) {
	for r := range levels.Rank(t.Size()) {
		if t.Domain(r, k) == t.Domain(a, k) {
			all = append(all, r)
		}
	}
	return all
}

// drawing is a curve and the scripts of its points.
type drawing struct {
	Curve
	scripts []*script
}

// maxRounds and roundBytes bound the messages of a sample.
const (
	maxRounds  = 64
	roundBytes = 1 << 20
)

// newDrawing prepares a curve.
func newDrawing(symbol byte, way Way, pairs []pair, sizes []int64) *drawing {
	d := &drawing{Curve: Curve{Level: machine.Symbol(symbol), Way: way, Pairs: len(pairs)}}
	for _, n := range sizes {
		count := int(max(2, min(maxRounds, roundBytes/max(n, 1))))
		name := fmt.Sprintf("%v of %d pairs at %c, %d×%d", way, len(pairs), symbol, count, n)
		s := streamScript(name, pairs, n, count, count, way == BothWays)
		if way == Turns {
			s = turnScript(name, pairs, n, count)
		}
		d.scripts, d.Points = append(d.scripts, s), append(d.Points, Point{Bytes: n, Messages: count})
	}
	return d
}

// measureTimes fills in the measured times.
func (d *drawing) measureTimes(ctx context.Context, c stopwatch, stop stats.Stop) error {
	all, err := c.times(ctx, stop, d.scripts...)
	if err != nil {
		return fmt.Errorf("measure %v at level %c: %w", d.Way, d.Level, err)
	}
	for i := range d.Points {
		p := &d.Points[i]
		p.Sample = all[i].Slowest
		p.NS, p.Half = p.Sample.P50/d.messages(p), p.Sample.Half/d.messages(p)
		if p.NS > 0 {
			p.Rate = float64(p.Bytes) * d.atOnce() / p.NS
			p.OldRate = p.Rate
		}
	}
	return nil
}

// messages returns how many messages one after the other make a sample.
func (d *drawing) messages(p *Point) float64 {
	if d.Way == Turns {
		return float64(2 * p.Messages)
	}
	return float64(p.Messages)
}

// atOnce returns how many messages are on their way at the same time.
func (d *drawing) atOnce() float64 {
	if d.Way == BothWays {
		return float64(2 * d.Pairs)
	}
	return float64(d.Pairs)
}

// modelTimes fills in the times by a machine's numbers.
func (d *drawing) modelTimes(t *levels.Topology, m *machine.Machine) error {
	for i, s := range d.scripts {
		ns, err := s.modelTime(t, m)
		if err != nil {
			return err
		}
		d.Points[i].Modelled = ns / d.messages(&d.Points[i])
	}
	return nil
}

// modelTime returns how long a script takes by a machine's numbers, ns.
func (s *script) modelTime(t *levels.Topology, m *machine.Machine) (float64, error) {
	r, err := s.simulateOn(t, m, sim.Options{})
	if err != nil {
		return 0, err
	}
	return r.Time.Nanoseconds(), nil
}
