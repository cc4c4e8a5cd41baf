package join

import (
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
)

func TestAbsentText(t *testing.T) {
	for _, c := range []struct {
		missing []levels.Rank
		waited  time.Duration
		want    string
	}{
		{[]levels.Rank{5}, 30*time.Second + 3*time.Millisecond, "rank 5 did not join within 30 s (have 7 of 8)"},
		{[]levels.Rank{1, 3, 4, 5, 7}, 1500 * time.Millisecond, "ranks 1, 3-5, 7 did not join within 1.5 s (have 3 of 8)"},
		{[]levels.Rank{6, 7}, 20 * time.Millisecond, "ranks 6-7 did not join within 20 ms (have 6 of 8)"},
	} {
		if got := absent(c.missing, 8, c.waited, nil).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
