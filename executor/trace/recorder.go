package trace

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Recorder keeps the step events of any number of ranks. It keeps all of them
// (48 bytes each) until it is dropped itself, so it is for runs one wants to look
// at, not for a program's whole life. It is safe for concurrent use.
type Recorder struct {
	epoch  time.Time
	shards [shards]shard
}

// NewRecorder returns an empty recorder; its epoch is now.
func NewRecorder() *Recorder { return &Recorder{epoch: time.Now()} }

// Hooks returns hooks for recording into r, the same for all ranks.
func (r *Recorder) Hooks() Hooks { return Hooks{Epoch: r.epoch, Step: r.add} }

func (r *Recorder) add(e Event) { r.shards[uint32(e.Rank)%shards].add(e) }

// Events returns a copy of all events so far, sorted by Begin, Rank and
// Step; equal ones stay in the order of recording.
func (r *Recorder) Events() []Event {
	var all []Event
	for i := range r.shards {
		all = r.shards[i].appendTo(all)
	}
	slices.SortStableFunc(all, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Step, b.Step))
	})
	return all
}

const (
	shards    = 64   // ranks of one process seldom share a lock
	blockSize = 1024 // events
)

// shard keeps the events of some ranks in blocks of fixed size: growing copies
// nothing, so recording one event never takes long.
type shard struct {
	mu     sync.Mutex
	blocks [][]Event // all but the last are full
}

func (s *shard) add(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.blocks) - 1
	if last < 0 || len(s.blocks[last]) == blockSize {
		s.blocks = append(s.blocks, make([]Event, 0, blockSize))
		last++
	}
	s.blocks[last] = append(s.blocks[last], e)
}

func (s *shard) appendTo(all []Event) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.blocks {
		all = append(all, b...)
	}
	return all
}
