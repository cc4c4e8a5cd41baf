package tune

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far a search is and how long it will take: as a bar on a
// terminal, elsewhere as a line from time to time.
type progress struct {
	out   io.Writer
	what  string
	bar   *progressbar.ProgressBar // nil: lines
	begin time.Time
	said  time.Time
}

// quietTime is the time between two lines. Tests make it longer: they hold what is printed.
var quietTime = 30 * time.Second

func newProgress(out io.Writer, what string) *progress {
	p := &progress{out: out, what: what, begin: time.Now(), said: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(-1, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return p
}

// show prints that so many of all planned measurements are done.
func (p *progress) show(done, planned int) {
	if p.bar != nil {
		p.bar.ChangeMax(planned)
		_ = p.bar.Set(done) // a terminal that is gone doesn't matter
		return
	}
	if now := time.Now(); done > 0 && now.Sub(p.said) >= quietTime {
		p.said = now
		left := time.Duration(float64(now.Sub(p.begin)) / float64(done) * float64(planned-done))
		fmt.Fprintf(p.out, "%s: %d of %d measurements, about %v left\n", p.what, done, planned, left.Round(time.Second))
	}
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
