package kit

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// A bar and what is needed are shown from two seconds on, and taken away in the end.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		now := time.Unix(0, 0)
		p := newProgress(&out, "simulating", "it needs 5 steps", func() time.Time { return now })
		p.Show(1, 5)
		now = now.Add(patience - 1)
		p.Show(2, 5)
		if out.Len() > 0 {
			t.Errorf("before two seconds it says %q", &out)
		}
		now = now.Add(1)
		p.Show(0, 0)
		if text := out.String(); text != "it needs 5 steps\n" {
			t.Errorf("before it knows how much there is it says %q", text)
		}
		p.Show(3, 5)
		clocktest.Pass(200 * time.Millisecond) // the bar's own clock keeps it from writing more often
		p.Show(4, 5)
		if text := out.String(); strings.Count(text, "it needs") != 1 || !strings.Contains(text, "simulating") || !strings.Contains(text, "80%") {
			t.Errorf("it says %q", text)
		}
		p.Finish()
		if text := out.String(); !strings.HasSuffix(text, "\r") {
			t.Errorf("in the end it says %q", text)
		}
	})
}

// What is no terminal hears nothing.
func TestProgressElsewhere(t *testing.T) {
	var out bytes.Buffer
	if p := NewProgress(&out, "simulating", "it needs much"); p != nil {
		t.Errorf("%+v", p)
	}
	var none *Progress
	none.Show(1, 2)
	none.Finish()
}
