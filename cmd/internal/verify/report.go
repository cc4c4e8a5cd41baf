package verify

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// verification is the output of verify.
type verification struct {
	Cases   int            `json:"cases"`
	Checked int            `json:"checked"`
	Skipped map[string]int `json:"skipped"` // by reason
	Failed  int            `json:"failed"`
	Steps   int64          `json:"steps"`
	Seconds float64        `json:"seconds"`
	Seed    *uint64        `json:"seed,omitempty"`
	Failure *failureReport `json:"failure,omitempty"`
}

// failureReport is the smallest failure found.
type failureReport struct {
	Command string `json:"command"` // repeats it
	Error   string `json:"error"`
}

// text returns the report as one line.
func (r *verification) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d cases", r.Cases)
	if r.Seed != nil {
		fmt.Fprintf(&b, " (seed %d)", *r.Seed)
	}
	fmt.Fprintf(&b, ": %d checked, %d failed", r.Checked, r.Failed)
	var skipped []string
	sum := 0
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		skipped = append(skipped, fmt.Sprintf("%d %s", r.Skipped[reason], reason))
		sum += r.Skipped[reason]
	}
	if sum > 0 {
		fmt.Fprintf(&b, ", %d skipped (%s)", sum, strings.Join(skipped, ", "))
	}
	fmt.Fprintf(&b, "; %d steps in %.1f s\n", r.Steps, r.Seconds)
	return b.Bytes()
}
