package price

// Price is what a plan takes. NS is the sum of the terms.
type Price struct {
	NS float64
	Terms
}

// Terms are the parts of a price, each in ns.
type Terms struct {
	Latency   float64 // messages are on their way
	Wire      float64 // bytes pass the busiest link
	Processor float64 // the busiest processor handles messages
	Work      float64 // it copies and reduces
	Filling   float64 // the first segment passes through a pipeline of several
	Waiting   float64 // the window is closed
}

// Names lists the terms in words, in the order of [Terms.Values].
func Names() []string {
	return []string{"latency", "bytes on the busiest link", "messages on the busiest processor", "copies and reductions", "filling the pipeline", "a closed window"}
}

// Values lists the terms, in the order of [Names].
func (t *Terms) Values() []float64 {
	return []float64{t.Latency, t.Wire, t.Processor, t.Work, t.Filling, t.Waiting}
}

// sum returns all terms together.
func (t *Terms) sum() float64 {
	return t.Latency + t.Wire + t.Processor + t.Work + t.Filling + t.Waiting
}

// plus returns the terms of one thing after the other.
func (t Terms) plus(u Terms) Terms {
	return Terms{t.Latency + u.Latency, t.Wire + u.Wire, t.Processor + u.Processor, t.Work + u.Work, t.Filling + u.Filling, t.Waiting + u.Waiting}
}

// times returns the terms of a thing done x times.
func (t Terms) times(x float64) Terms {
	return Terms{float64(t.Latency * x), float64(t.Wire * x), float64(t.Processor * x), float64(t.Work * x), float64(t.Filling * x), float64(t.Waiting * x)}
}

// later returns the larger one of two.
func later(a, b Terms) Terms {
	if b.sum() > a.sum() {
		return b
	}
	return a
}

// work is time spent on copies and reductions.
func work(ns float64) Terms { return Terms{Work: ns} }
