package executor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// note records a message.
func (e *Endpoint) note(k flight.Kind, peer levels.Rank, m *wire.Message) {
	e.flight.Message(k, uint8(m.Kind), uint64(m.Comm), m.Seq, m.Pass, int32(peer), m.Edge|m.Tag, m.Size)
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
//
// While another world of this process records to the same path, the second one's
// files end in .w2, the third one's in .w3, and so on. Processes that make worlds
// in the same order therefore call the files of one world alike, and no rank
// writes over what another one records.
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
	var first error
	w.local(func(e *Endpoint) {
		if first != nil {
			return
		}
		ring, err := flight.Create(w.recordsTo.file(e.rank), int(e.rank), w.Size(), w.config.RecorderEvents)
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

// recorderPath is where a world records. The zero value is nowhere.
type recorderPath struct {
	path   string
	number int // among the worlds of this process that record there, from 1 on
}

// recorderPaths are those in use. Files are the process's, not a world's: so is
// this.
var recorderPaths = pathsInUse{used: map[recorderPath]bool{}}

type pathsInUse struct {
	mu   sync.Mutex
	used map[recorderPath]bool
}

// take finds the first number that is free.
func (p *pathsInUse) take(path string) recorderPath {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := recorderPath{path, 1}
	for p.used[r] {
		r.number++
	}
	p.used[r] = true
	return r
}

func (r recorderPath) release() {
	recorderPaths.mu.Lock()
	defer recorderPaths.mu.Unlock()
	delete(recorderPaths.used, r)
}

// file is a rank's.
func (r recorderPath) file(rank levels.Rank) string {
	name := strings.ReplaceAll(r.path, "%r", strconv.Itoa(int(rank)))
	if r.number > 1 {
		name += fmt.Sprintf(".w%d", r.number)
	}
	return name
}

// endRecordings says in the files that the ranks have left in good order. The
// world's lock is held.
func (w *World) endRecordings() error {
	var errs []error
	w.local(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		errs = append(errs, e.flight.Close())
	})
	w.recordsTo.release()
	return errors.Join(errs...)
}
