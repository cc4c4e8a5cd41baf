package planner

import (
	"fmt"
	"sync"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/tasks"
)

// store keeps the compiled programs of a communicator for calls of equal uses. A call borrows a program and returns it.
// Programs of one use run at the same time only if they are several.
type store struct {
	mu     sync.Mutex // held to look, and to compile a one-shot call; not while a kept program runs
	kept   kept
	recent [recents]recent // some of the one-shot calls in kept, made by RunRequest
	tags   int             // of exchanges, given so far: the same number on all ranks
}

// use is what a program is for.
type use struct {
	why     purpose
	request tasks.Request // canonical
}

// program is one in the store: a [Collective], an exchange or a countsCall.
type program interface {
	place() *place
	footprint() int64 // bytes of program, scratch and buffers of its own
}

// place is a program's in the store.
type place struct {
	use   use
	bytes int64   // its footprint
	busy  bool    // borrowed
	used  uint64  // when it was last borrowed, by kept.clock
	next  program // another one of the same use; nil: none
}

// kept has the programs.
type kept struct {
	programs map[use]program // by use, the first of them; nil when closed
	n        int
	bytes    int64  // of all: their footprints
	clock    uint64 // of uses; each moves it on by one
}

// Bounds of a store. The least recently used program goes first.
const (
	keptPrograms = 1024
	keptBytes    = 64 << 20
)

func newKept() kept { return kept{programs: map[use]program{}} }

// take returns a free program, now borrowed; nil: there is none.
func (k *kept) take(u use) program {
	for x := k.programs[u]; x != nil; x = x.place().next {
		if p := x.place(); !p.busy {
			k.lend(p)
			return x
		}
	}
	return nil
}

// lend marks a program as borrowed now.
func (k *kept) lend(p *place) {
	k.clock++
	p.busy, p.used = true, k.clock
}

// add keeps a program.
func (k *kept) add(u use, x program, busy bool) {
	k.clock++
	*x.place() = place{use: u, bytes: x.footprint(), busy: busy, used: k.clock, next: k.programs[u]}
	k.programs[u] = x
	k.n++
	k.bytes += x.place().bytes
}

// isTooLarge reports whether a program must be forgotten.
func (k *kept) isTooLarge() bool { return k.n > keptPrograms || k.bytes > keptBytes && k.n > 1 }

// stalest is the program that was used least recently. It looks at all of them: far less work than compiling one.
func (k *kept) stalest() (stalest program) {
	for _, x := range k.programs {
		for ; x != nil; x = x.place().next {
			if stalest == nil || x.place().used < stalest.place().used {
				stalest = x
			}
		}
	}
	return stalest
}

// forget drops a program. Whoever has borrowed it may go on.
func (k *kept) forget(x program) {
	p := x.place()
	if first := k.programs[p.use]; first == x {
		if k.programs[p.use] = p.next; p.next == nil {
			delete(k.programs, p.use)
		}
	} else {
		for first.place().next != x {
			first = first.place().next
		}
		first.place().next = p.next
	}
	k.n--
	k.bytes -= p.bytes
}

// borrow returns a free program for a use, made by create unless there is one.
func (s *store) borrow(u use, create func() (program, error)) (program, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(u, true, create)
}

// ready keeps a program for later calls, made by create unless there is one.
func (s *store) ready(u use, create func() (program, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.programs[u] != nil {
		return nil
	}
	_, err := s.find(u, false, create)
	return err
}

// find is borrow, or ready without busy. s.mu is held.
func (s *store) find(u use, busy bool, create func() (program, error)) (program, error) {
	if s.kept.programs == nil {
		return nil, fmt.Errorf("%v: %w", u.request, executor.ErrClosed)
	}
	if x := s.kept.take(u); x != nil {
		return x, nil
	}
	x, err := create()
	if err != nil {
		return nil, err
	}
	for s.kept.add(u, x, busy); s.kept.isTooLarge(); {
		s.forget(s.kept.stalest())
	}
	return x, nil
}

// giveBack returns a borrowed program. Another call may take it at once. One whose call has failed may stay
// borrowed: it goes as the least recently used.
func (s *store) giveBack(x program) {
	s.mu.Lock()
	x.place().busy = false
	s.mu.Unlock()
}

// forget drops a program. s.mu is held.
func (s *store) forget(x program) {
	s.kept.forget(x)
	for i := range s.recent {
		if s.recent[i].col == x {
			s.recent[i] = recent{}
		}
	}
}

// forgetAll drops all programs: they were decided otherwise than they would be now.
func (s *store) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.programs != nil {
		s.kept = newKept()
	}
	clear(s.recent[:])
}

// swap takes other programs, and puts its own into was, unless it is closed. Calls of other
// goroutines see the programs change together with what also changes.
func (s *store) swap(now, was *kept, also func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	also()
	if s.kept.programs != nil {
		*was, s.kept = s.kept, *now
		clear(s.recent[:])
	}
}

// close drops all programs, and keeps none from now on. It reports whether it was open.
func (s *store) close() (was bool) {
	s.mu.Lock() // calls needn't wait for those of other ranks
	defer s.mu.Unlock()
	was = s.kept.programs != nil
	s.kept = kept{}
	clear(s.recent[:])
	return was
}

// nextTag returns the next exchange's tag.
func (s *store) nextTag() int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tags++
	return int32(lastTag + 1 + s.tags%exchangeTags)
}
