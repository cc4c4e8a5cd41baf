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

// dumpAgain is the time for a second SIGQUIT to have its usual effect in Go.
const dumpAgain = time.Second

// dumpEvents is the number of last events dumped for each rank.
const dumpEvents = 16

// DumpOnQuit writes the states of the world's ranks to out when the process gets SIGQUIT, see
// [World.Dump], and where the program's goroutines stand. Then the signal has its usual effect: Go ends the process with the
// stacks of all goroutines, some hundred lines, status 2. A program with its own handler of SIGQUIT goes on, but gets the signal
// twice: nobody can see its handler. With goOn the process goes on, unless it gets a second SIGQUIT
// within a second. An ignored signal stays ignored. stop ends the watch.
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
				w.dump(out, !goOn)
			}
			if again || !goOn {
				sendQuit(signals, end)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(end)
		<-ended
	}
}

// sendQuit sends this process SIGQUIT with nobody listening at signals. It returns if the
// process survives for a second: somebody else listens.
func sendQuit(signals chan<- os.Signal, end <-chan struct{}) {
	signal.Stop(signals)
	quit()
	select {
	case <-time.After(dumpAgain):
		signal.Notify(signals, syscall.SIGQUIT)
	case <-end:
	}
}

// Dump writes for each rank of this process its open calls with their peers and times, the line of
// its program, and its last events. All is one write; errors are dropped.
func (w *World) Dump(out io.Writer) { w.dump(out, false) }

// dump is Dump. Before the end of the process it also writes the program's goroutines, and a heading for what Go writes then.
func (w *World) dump(out io.Writer, ends bool) {
	var b bytes.Buffer
	var recs []*flight.Recording
	for _, s := range w.localStates() {
		e := w.endpoints[s.Rank]
		e.mu.Lock()
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
	if ends {
		printProgram(&b, readStacks())
	}
	if err := flight.PrintEvents(&b, recs, dumpEvents); err != nil {
		fmt.Fprintln(&b, err)
	}
	if ends {
		fmt.Fprintln(&b, "The rest is Go's: stacks of all goroutines, those of the library and of Go too, and the end, unless the program handles SIGQUIT.")
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

// printState writes the line of one rank.
func printState(b *bytes.Buffer, s *flight.State) { fmt.Fprintf(b, "rank %d: %v\n", s.Rank, s) }

// ProgramAt returns the place of the program in a process outside of any job.
func ProgramAt() string { return findProgram(readStacks(), 0, true) }

// AnswerEach calls answer for each byte from in until its end. Its goroutine lasts as long as the
// process; nobody waits for it.
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
