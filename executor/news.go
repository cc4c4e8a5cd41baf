package executor

import "time"

// nextNews returns a channel that is closed by the next news: a break, another rank's question, or the end
// of the world. The lock is held.
func (w *driverState) nextNews() <-chan struct{} {
	if w.news == nil {
		w.news = make(chan struct{})
	}
	return w.news
}

// tellNews lets those that pause look around. The lock is held.
func (w *driverState) tellNews() {
	if w.news != nil {
		close(w.news)
		w.news = nil
	}
}

// pauseUnless returns after d, or as soon as news make isOver true. The lock must not be held.
func (e *Endpoint) pauseUnless(d time.Duration, isOver func() bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		e.mu.Lock()
		news := e.nextNews() // before isOver looks: none is missed
		e.mu.Unlock()
		if isOver() {
			return
		}
		select {
		case <-news:
		case <-timer.C:
			return
		}
	}
}
