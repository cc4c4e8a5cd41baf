package learn

import "math"

// Cautious returns what a point that nobody has measured counts as in a choice, ns.
func (l *Learner) Cautious(at int) float64 { return l.Predict(at) * math.Exp2(l.deviation(at)) }
