package executor

import (
	"testing"
	"time"
)

// A letter that waits, or has come a moment ago, is not taken again; others are, and the same one later.
func TestPostbag(t *testing.T) {
	now := time.Now()
	p := &postbag{
		waiting: [][]byte{[]byte("propose")},
		carried: []carriedLetter{{[]byte("start"), now}, {[]byte("vote"), now.Add(-2 * letterRest)}},
	}
	for letter, want := range map[string]bool{"propose": true, "start": true, "vote": false, "decide": false} {
		if got := p.has([]byte(letter)); got != want {
			t.Errorf("%s: %v, want %v", letter, got, want)
		}
	}
}
