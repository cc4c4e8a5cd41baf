package costs

import (
	"fmt"
	"strings"
)

// Regime is how the calls of a collective follow each other while they are timed. The zero
// value is invalid.
type Regime uint8

// The regimes.
const (
	_          Regime = iota
	Single            // each rank has computed and written its buffers; all then call once
	BackToBack        // a call follows the last one, and may hide its end on another rank
	maxRegime
)

var regimeNames = [maxRegime]string{Single: "single", BackToBack: "back-to-back"}

// String returns the regime's name, as flags and files have it.
func (r Regime) String() string {
	if r == 0 || r >= maxRegime {
		return "invalid"
	}
	return regimeNames[r]
}

// Regimes lists all regimes.
func Regimes() []Regime { return []Regime{Single, BackToBack} }

// MarshalText returns the regime's name.
func (r Regime) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a regime's name.
func (r *Regime) UnmarshalText(text []byte) error {
	for *r = 1; *r < maxRegime; *r++ {
		if regimeNames[*r] == string(text) {
			return nil
		}
	}
	*r = 0
	return fmt.Errorf("regime %q is not known; known are %s", text, strings.Join(regimeNames[1:], ", "))
}
