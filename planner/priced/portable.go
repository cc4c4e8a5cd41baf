package priced

import "math"

// log is the natural logarithm, with the same bits on all processors: math.Log is assembly on some of them, and they may
// fuse sums of products. So no product is left without its conversion. It is right to 15 digits; 0 < x < ∞.
func log(x float64) float64 {
	f, e := math.Frexp(x) // 1/2 <= f < 1
	s := (f - 1) / (f + 1)
	sum, square := 0.0, float64(s*s) // 2·artanh(s) = log f; s² <= 1/9
	for n := 35; n > 0; n -= 2 {
		sum = 1/float64(n) + float64(sum*square)
	}
	return float64(float64(e)*math.Ln2) + float64(2*s*sum)
}

// exp is the exponential function, with the same bits on all processors as [log]. |x| < 700.
func exp(x float64) float64 {
	n := math.Round(x / math.Ln2)
	r := x - float64(n*math.Ln2) // |r| <= 0.35
	sum := 1.0
	for k := 15.0; k > 0; k-- {
		sum = 1 + float64(r*sum)/k
	}
	return math.Ldexp(sum, int(n))
}
