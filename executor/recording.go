package executor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels"
)

// note records a message.
func (e *Endpoint) note(k flight.Kind, peer levels.Rank, m *message) {
	e.flight.Add(flight.Event{
		Kind: k, Message: uint8(m.kind), Comm: m.comm, Seq: m.seq, Pass: m.pass,
		Peer: int32(peer), Edge: m.edge, Bytes: m.size,
	})
}

// Recording is a copy of what the rank did last, nil if nothing is recorded.
func (e *Endpoint) Recording() *flight.Recording {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := e.flight.Path()
	if name == "" {
		name = fmt.Sprintf("of rank %d", e.rank)
	}
	return e.flight.Recording(name)
}

// Record lets the ranks of this process record to files, which outlive it even if
// it is killed: path, in which %r is the rank. It must be there if the job has
// several ranks. What was recorded before is lost. An existing file is replaced
// if it is a recording, and an error else.
func (w *World) Record(path string) error {
	if w.Size() > 1 && !strings.Contains(path, "%r") {
		return fmt.Errorf("recorder file %q: %d ranks need a file each; write %%r where the rank goes", path, w.Size())
	}
	if w.config.RecorderEvents < 0 {
		return errors.New("nothing to record: RecorderEvents is negative")
	}
	var first error
	w.local(func(e *Endpoint) {
		if first != nil {
			return
		}
		ring, err := flight.Create(strings.ReplaceAll(path, "%r", strconv.Itoa(int(e.rank))), int(e.rank), w.Size(), w.config.RecorderEvents)
		if err != nil {
			first = err
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.flight = ring
	})
	return first
}

// endRecordings says in the files that the ranks have left in good order.
func (w *World) endRecordings() error {
	var errs []error
	w.local(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		errs = append(errs, e.flight.Close())
	})
	return errors.Join(errs...)
}
