package tune

import (
	"fmt"
	"strings"
	"time"
)

// spending is a search's time for each kind of measurement. Kinds are in the order of their first
// measurement.
type spending struct {
	All   []Spent
	kind  string
	since time.Time
	clock func() time.Duration // of a simulated machine; nil: time here
	at    time.Duration        // by clock, when kind began
}

// Spent is the time for one kind of measurement.
type Spent struct {
	Kind         string  `json:"kind"`
	Measurements int     `json:"measurements"`
	Seconds      float64 `json:"seconds"`
}

// begin notes the beginning of n measurements of a kind. Those before have ended.
func (s *spending) begin(kind string, n int) {
	s.end()
	s.kind, s.since = kind, time.Now()
	if s.clock != nil {
		s.at = s.clock()
	}
	s.spentOn(kind).Measurements += n
}

// end notes the end of the last measurements.
func (s *spending) end() {
	switch {
	case s.kind != "" && s.clock != nil:
		s.spentOn(s.kind).Seconds += (s.clock() - s.at).Seconds()
	case s.kind != "":
		s.spentOn(s.kind).Seconds += time.Since(s.since).Seconds()
	}
	s.kind = ""
}

// spentOn returns the entry of a kind, a new one if there is none.
func (s *spending) spentOn(kind string) *Spent {
	for i := range s.All {
		if s.All[i].Kind == kind {
			return &s.All[i]
		}
	}
	s.All = append(s.All, Spent{Kind: kind})
	return &s.All[len(s.All)-1]
}

// SpentText returns a text such as 24 pipelines 2.1 s, 30 races 1.8 s.
func SpentText(all []Spent) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, fmt.Sprintf("%d %s %.1f s", s.Measurements, s.Kind, s.Seconds))
	}
	return strings.Join(parts, ", ")
}
