package charts

import "testing"

// Points of all series stand over their ticks; whiskers of several stand beside each other.
func TestPointsStandOverTicks(t *testing.T) {
	s := Series{Values: []float64{1, 2}, Low: []float64{1, 1}, High: []float64{2, 2}}
	for _, style := range []Style{Points, Lines, Bars} {
		p := Plot{Style: style, Names: []string{"a", "b"}, Series: []Series{s, s, s}}
		last := -1.0
		for i := range p.Series {
			at := p.pointsOf(i)
			if at.XYs[0].X != 1 || at.XYs[1].X != 2 || at.shift <= last || max(at.shift, -at.shift) >= 0.5 {
				t.Errorf("style %d, series %d: %+v", style, i, at)
			}
			last = at.shift
		}
	}
}
