package derived

// Coeff is how often each cost is on the longest path: T = Alpha·α + Beta·β + Combined·c.
type Coeff struct {
	Alpha    float64 // messages; a burst of k counts as γ(k+1) messages
	Beta     float64 // bytes of messages, counted as Alpha is
	Combined float64 // bytes combined with others by a reduction
}

// plus returns the sum of two paths, one after the other.
func (c Coeff) plus(d Coeff) Coeff {
	return Coeff{c.Alpha + d.Alpha, c.Beta + d.Beta, c.Combined + d.Combined}
}

// Times returns n times a path.
func (c Coeff) Times(n float64) Coeff { return Coeff{n * c.Alpha, n * c.Beta, n * c.Combined} }

// Line is the time of one message in the context of one algorithm.
type Line struct {
	Alpha   float64 `json:"alpha_ns"`        // ns, 0 or more
	Beta    float64 `json:"beta_ns"`         // ns a byte, 0 or more
	Combine float64 `json:"combine_byte_ns"` // ns for a byte of a reduction, 0 or more
}

// NS returns how long a path takes, ns.
func (l Line) NS(c Coeff) float64 {
	return float64(c.Alpha*l.Alpha) + float64(c.Beta*l.Beta) + float64(c.Combined*l.Combine)
}
