package charts

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// named puts a name at each whole number from 1.
type named []string

// Ticks are those of the axis.
func (n named) Ticks(_, _ float64) []plot.Tick {
	all := make([]plot.Tick, len(n))
	for i, name := range n {
		all[i] = plot.Tick{Value: float64(i + 1), Label: name}
	}
	return all
}

// plain writes the numbers of other ticks without exponents.
type plain struct{ plot.Ticker }

// Ticks are those of the axis.
func (p plain) Ticks(low, high float64) []plot.Tick {
	all := p.Ticker.Ticks(low, high)
	for i := range all {
		if !all[i].IsMinor() {
			all[i].Label = plainNumber(all[i].Value)
		}
	}
	return all
}

// decades are ticks of a logarithmic axis. The fewer decades there are, the more of their
// ticks have numbers.
type decades struct{}

// Ticks are those of the axis.
func (decades) Ticks(low, high float64) []plot.Tick {
	first, last := int(math.Floor(math.Log10(low))), int(math.Ceil(math.Log10(high)))
	numbered := map[int]bool{1: true}
	switch {
	case last-first <= 2:
		numbered[2], numbered[5] = true, true
	case last-first <= 3:
		numbered[3] = true
	}
	var all []plot.Tick
	for k := first; k <= last; k++ {
		for i := 1; i < 10; i++ {
			at := plot.Tick{Value: float64(i) * math.Pow10(k)}
			if numbered[i] {
				at.Label = plainNumber(at.Value)
			}
			if at.Value >= low && at.Value <= high {
				all = append(all, at)
			}
		}
	}
	return all
}

// plainNumber writes six digits of a number, and no exponent.
func plainNumber(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		rounded = v
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
