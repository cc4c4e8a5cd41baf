package kit

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// patience is for how long a command says nothing of how far it is.
const patience = 2 * time.Second

// Progress shows the state of long work on a terminal, from two seconds on: a line about its
// need, and a bar. Elsewhere it shows nothing. It is safe for concurrent use. nil shows nothing,
// too.
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

// NewProgress returns the progress of work named what, nil if out is no terminal. need is a line
// about its memory or steps; empty: none.
func NewProgress(out io.Writer, what, need string) *Progress {
	if !isTerminal(out) {
		return nil
	}
	return newProgress(Raw(out), what, need, time.Now)
}

func newProgress(out io.Writer, what, need string, now func() time.Time) *Progress {
	return &Progress{out: out, what: what, need: need, begin: now(), now: now}
}

// Show shows how much is done, of all; all ≤ 0: work goes on, of unknown length.
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
	_ = p.bar.Set64(min(done, all-1)) // all would end it; the loss of a terminal doesn't matter
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
