package executor_test

import (
	"sync"
	"testing"
)

// team is a goroutine per rank that runs a function again and again, so that a
// measurement starts none.
type team struct {
	begin []chan bool
	done  sync.WaitGroup
	errs  []error
}

func newTeam(n int, f func(rank int) error) *team {
	m := &team{begin: make([]chan bool, n), errs: make([]error, n)}
	for r := range m.begin {
		m.begin[r] = make(chan bool)
		go func() { // until dismiss
			for range m.begin[r] {
				if err := f(r); err != nil {
					m.errs[r] = err
				}
				m.done.Done()
			}
		}()
	}
	return m
}

func (m *team) once() {
	m.done.Add(len(m.begin))
	for _, b := range m.begin {
		b <- true
	}
	m.done.Wait()
}

func (m *team) dismiss(t testing.TB) {
	for r, b := range m.begin {
		close(b)
		if m.errs[r] != nil {
			t.Errorf("rank %d: %v", r, m.errs[r])
		}
	}
}
