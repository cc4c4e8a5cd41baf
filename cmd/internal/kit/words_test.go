package kit

import "testing"

// A rate never vanishes: it is printed in a unit that fits, and in JSON small ones have three digits.
func TestRates(t *testing.T) {
	for _, test := range []struct {
		gbytes  float64
		text    string
		rounded float64
	}{
		{0, "0 B/s", 0},
		{12.34567891, "12.3 GB/s", 12.345679},
		{0.5, "500 MB/s", 0.5},
		{0.0684218, "68.4 MB/s", 0.068422},
		{0.00041267, "413 kB/s", 0.000413},
		{0.0000131, "13.1 kB/s", 0.0000131},
		{4.1267e-9, "4.13 B/s", 4.13e-9},
	} {
		if text, v := RateText(1e9*test.gbytes), RoundRate(test.gbytes); text != test.text || v != test.rounded {
			t.Errorf("%v: %s and %v, want %s and %v", test.gbytes, text, v, test.text, test.rounded)
		}
	}
}
