package kit

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// patience is for how long a command says nothing of how far it is.
const patience = 2 * time.Second

// Progress shows how far something is that takes long: what it needs, in a line, and a bar,
// from two seconds on, on a terminal. Elsewhere it shows nothing. It is safe for
// concurrent use. nil shows nothing, too.
type Progress struct {
	out   io.Writer
	what  string
	need  string
	begin time.Time
	now   func() time.Time

	mu  sync.Mutex
	bar *progressbar.ProgressBar // nil: not yet
	all int64
}

// NewProgress returns the progress of what has the name what. need says what it needs; empty:
// nothing that is worth a line. It is nil if out is no terminal.
func NewProgress(out io.Writer, what, need string) *Progress {
	if !isTerminal(out) {
		return nil
	}
	return newProgress(Raw(out), what, need, time.Now)
}

func newProgress(out io.Writer, what, need string, now func() time.Time) *Progress {
	return &Progress{out: out, what: what, need: need, begin: now(), now: now}
}

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool {
	f, ok := Raw(out).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Show says that done of all is done; all ≤ 0: something goes on, nobody knows how much it is.
func (p *Progress) Show(done, all int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now().Sub(p.begin) < patience {
		return
	}
	if p.need != "" {
		fmt.Fprintln(p.out, p.need)
		p.need = ""
	}
	if all <= 0 {
		return
	}
	if p.bar == nil {
		p.all = all
		p.bar = progressbar.NewOptions64(all, progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription(p.what),
			progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetRenderBlankState(true))
	}
	if all != p.all {
		p.all = all
		p.bar.ChangeMax64(all)
	}
	_ = p.bar.Set64(min(done, all-1)) // which doesn't end it; a terminal that is gone doesn't matter
}

// Finish takes the bar away.
func (p *Progress) Finish() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}
