package kit

import "testing"

// A rate never vanishes: small ones have three digits.
func TestRates(t *testing.T) {
	for _, test := range []struct {
		rate    float64
		text    string
		rounded float64
	}{
		{0, "0.000", 0},
		{12.34567891, "12.346", 12.345679},
		{0.5, "0.500", 0.5},
		{0.0684218, "0.0684", 0.068422},
		{0.00041267, "0.000413", 0.000413},
		{4.1267e-9, "0.00000000413", 4.13e-9},
	} {
		if text, v := RateText(test.rate), RoundRate(test.rate); text != test.text || v != test.rounded {
			t.Errorf("%v: %s and %v, want %s and %v", test.rate, text, v, test.text, test.rounded)
		}
	}
}
