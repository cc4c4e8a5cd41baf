package tune

import (
	"fmt"
	"strings"
	"time"
)

// spending is the time that a search has spent on each kind of measurement. Kinds are
// in the order of their first measurement.
type spending struct {
	all   []spent
	kind  string
	since time.Time
	clock func() time.Duration // of a simulated machine; nil: time here
	at    time.Duration        // by clock, when kind began
}

// spent is the time for one kind of measurement.
type spent struct {
	Kind         string  `json:"kind"`
	Measurements int     `json:"measurements"`
	Seconds      float64 `json:"seconds"`
}

// begin notes that n measurements of a kind begin. Those before have ended.
func (s *spending) begin(kind string, n int) {
	s.end()
	s.kind, s.since = kind, time.Now()
	if s.clock != nil {
		s.at = s.clock()
	}
	s.spentOn(kind).Measurements += n
}

// end notes that the last measurements have ended.
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
func (s *spending) spentOn(kind string) *spent {
	for i := range s.all {
		if s.all[i].Kind == kind {
			return &s.all[i]
		}
	}
	s.all = append(s.all, spent{Kind: kind})
	return &s.all[len(s.all)-1]
}

// spentText returns a text such as 24 pipelines 2.1 s, 30 races 1.8 s.
func spentText(all []spent) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, fmt.Sprintf("%d %s %.1f s", s.Measurements, s.Kind, s.Seconds))
	}
	return strings.Join(parts, ", ")
}
