package executor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/executor/flight"
)

// Recording returns a copy of the rank's last events, nil if nothing is recorded.
func (e *Endpoint) Recording() *flight.Recording {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := e.flight.Path()
	if name == "" {
		name = fmt.Sprintf("of rank %d", e.rank)
	}
	return e.flight.Recording(name)
}

// Record lets the ranks of this process record to files; these outlive it even if it is killed. In
// path %r stands for the rank, and must be there if the job has several ranks. Earlier events are
// lost. An existing file is replaced if it is a recording, and an error else.
//
// While another world of this process records to the same path, the second one's files end in .w2,
// the third one's in .w3, and so on. So processes making worlds in the same order call the files of
// one world alike, and no rank overwrites another one's recording.
func (w *World) Record(path string) error {
	if w.Size() > 1 && !strings.Contains(path, "%r") {
		return fmt.Errorf("recorder file %q: %d ranks need a file each; write %%r where the rank goes", path, w.Size())
	}
	if w.config.RecorderEvents < 0 {
		return errors.New("nothing to record: RecorderEvents is negative")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("recorder file %q: %w", path, ErrClosed)
	}
	w.recordsTo.release()
	w.recordsTo = recorderPaths.take(path)
	for _, e := range w.endpoints {
		if e == nil {
			continue
		}
		ring, err := flight.Create(w.recordsTo.file(e.rank), int(e.rank), w.Size(), w.config.RecorderEvents)
		if err != nil {
			return err
		}
		e.mu.Lock()
		e.flight = ring
		e.mu.Unlock()
	}
	return nil
}

// endRecordings marks the recordings as ended by Close, and frees their path. The world's lock is
// held.
func (w *World) endRecordings() error {
	var errs []error
	w.eachLocked(func(e *Endpoint) {
		errs = append(errs, e.flight.Close())
	})
	w.recordsTo.release()
	return errors.Join(errs...)
}
