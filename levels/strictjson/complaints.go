package strictjson

import (
	"errors"
	"fmt"
)

// MaxComplaints is how many complaints an error lists: a file of something else
// would give one for each of its lines.
const MaxComplaints = 10

// Complaints collects the faults of one input. It keeps the first
// [MaxComplaints] and counts the others. The zero value has none.
type Complaints struct {
	errs []error
	more int // complaints beyond errs; 0 while len(errs) < MaxComplaints
}

// Add adds a complaint; format may wrap errors.
func (c *Complaints) Add(format string, args ...any) {
	if len(c.errs) == MaxComplaints {
		c.more++
		return
	}
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// Len returns how many complaints were added.
func (c *Complaints) Len() int { return len(c.errs) + c.more }

// Err returns the complaints as one error, one a line, with the number of omitted
// ones at the end; nil if there are none.
func (c *Complaints) Err() error {
	if c.more > 0 {
		return errors.Join(append(c.errs[:len(c.errs):len(c.errs)], fmt.Errorf("and %d more", c.more))...)
	}
	return errors.Join(c.errs...)
}

// Clip shortens a text to be quoted in an error.
func Clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
