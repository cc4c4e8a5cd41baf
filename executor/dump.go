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

// DumpOnQuit writes what the world's ranks are in to out when the process gets SIGQUIT,
// see [World.Dump]. Then the signal has the effect that it has without this: Go ends the
// process with the stacks of its goroutines, status 2. A program that asks for SIGQUIT
// itself gets it, and goes on, but gets it twice: nobody can see that it has asked. With
// goOn the process goes on, unless it gets a second SIGQUIT within a second. Where the
// signal is ignored it stays so. stop ends it.
func (w *World) DumpOnQuit(out io.Writer, goOn bool) (stop func()) {
	if signal.Ignored(syscall.SIGQUIT) {
		return func() {}
	}
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
			again := !last.IsZero() && time.Since(last) < dumpAgain
			if last = time.Now(); !again {
				w.Dump(out)
			}
			if again || !goOn {
				quitUnheard(signals, end)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(end)
		<-ended
	}
}

// quitUnheard sends this process SIGQUIT with nobody listening at signals. It returns if the
// process survives that for a second: somebody else listens.
func quitUnheard(signals chan<- os.Signal, end <-chan struct{}) {
	signal.Stop(signals)
	quit()
	select {
	case <-time.After(dumpAgain):
		signal.Notify(signals, syscall.SIGQUIT)
	case <-end:
	}
}

// Dump writes for each rank of this process its open calls with their peers and times,
// the line of its program, and its last events. All is one write; errors are dropped.
func (w *World) Dump(out io.Writer) {
	var b bytes.Buffer
	var recs []*flight.Recording
	for _, s := range w.localStates() {
		e := w.endpoints[s.Rank]
		if !e.lockWithin(lockTime) {
			printState(&b, &s)
			continue
		}
		e.flight.Tick()
		all, rec := e.listWaiting(), e.flight.Recording("")
		e.mu.Unlock()
		if len(all) == 0 {
			printState(&b, &s)
		}
		for _, text := range all {
			if s.At != "" {
				text += ", at " + s.At
			}
			fmt.Fprintln(&b, text)
		}
		if rec != nil {
			recs = append(recs, rec)
		}
	}
	if err := flight.PrintEvents(&b, recs, dumpEvents); err != nil {
		fmt.Fprintln(&b, err)
	}
	_, _ = out.Write(b.Bytes())
}

// PrintStates writes a line for each rank of this process: its state, and the line of its
// program.
func (w *World) PrintStates(out io.Writer) {
	var b bytes.Buffer
	for _, s := range w.localStates() {
		printState(&b, &s)
	}
	_, _ = out.Write(b.Bytes())
}

func printState(b *bytes.Buffer, s *flight.State) { fmt.Fprintf(b, "rank %d: %v\n", s.Rank, s) }

// ProgramAt says where the program of a process stands that has not entered its job.
func ProgramAt() string { return findProgram(readStacks(), 0, true) }

// AnswerEach calls answer for each byte from in until its end. Its goroutine lasts as long
// as the process; nobody waits for it.
func AnswerEach(in io.Reader, answer func()) {
	go func() {
		var one [1]byte
		for {
			if _, err := in.Read(one[:]); err != nil {
				return
			}
			answer()
		}
	}()
}
