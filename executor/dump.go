package executor

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
)

// dumpAgain is how soon a second SIGQUIT has the effect that Go gives it.
const dumpAgain = time.Second

// dumpEvents is how many of the last events of each rank are dumped.
const dumpEvents = 16

// DumpOnQuit writes what the world's ranks wait for to out when the process gets
// SIGQUIT, see [World.Dump], and lets it go on. A second SIGQUIT within a second
// ends the process with the stacks of its goroutines, as the first does without
// this. stop ends it.
func (w *World) DumpOnQuit(out io.Writer) (stop func()) {
	signals, end, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, syscall.SIGQUIT)
	go func() { // stop waits for it
		defer close(ended)
		var last time.Time
		for {
			select {
			case <-end:
				return
			case <-signals:
			}
			if !last.IsZero() && time.Since(last) < dumpAgain {
				signal.Reset(syscall.SIGQUIT)
				_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
				continue
			}
			last = time.Now()
			w.Dump(out)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(end)
		<-ended
	}
}

// Dump writes for each rank of this process what it waits for, for whom and since
// when, and its last events. A rank that computes is only named as such. What it
// writes is one write; errors are dropped.
func (w *World) Dump(out io.Writer) {
	var b bytes.Buffer
	var recs []*flight.Recording
	w.eachLocal(func(e *Endpoint) {
		if !e.lockWithin(dumpAgain / 4) {
			fmt.Fprintf(&b, "rank %d: computes\n", e.rank)
			return
		}
		e.flight.Tick()
		all, rec := e.listWaiting(), e.flight.Recording("")
		e.mu.Unlock()
		if len(all) == 0 {
			fmt.Fprintf(&b, "rank %d: in no call\n", e.rank)
		}
		for _, text := range all {
			fmt.Fprintln(&b, text)
		}
		if rec != nil {
			recs = append(recs, rec)
		}
	})
	if err := flight.PrintEvents(&b, recs, dumpEvents); err != nil {
		fmt.Fprintln(&b, err)
	}
	_, _ = out.Write(b.Bytes())
}

// lockWithin tries to get the lock: a rank holds it while it calls an operation of
// the user, which may take for ever.
func (e *Endpoint) lockWithin(limit time.Duration) bool {
	for until := time.Now().Add(limit); !e.mu.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}
