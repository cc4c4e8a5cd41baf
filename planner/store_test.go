package planner

import (
	"errors"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/tasks"
)

// lump is a program of some bytes.
type lump struct {
	inStore place
	bytes   int64
}

func (l *lump) place() *place    { return &l.inStore }
func (l *lump) footprint() int64 { return l.bytes }

// borrowLump borrows a program for a use with a count, and reports whether it was made now.
func borrowLump(t *testing.T, s *store, why purpose, count, bytes int64) (x program, isNew bool) {
	t.Helper()
	x, err := s.borrow(use{why, tasks.Request{Count: count}}, func() (program, error) {
		isNew = true
		return &lump{bytes: bytes}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return x, isNew
}

// Calls at the same time have programs of their own, and later ones take those: never one in use, nor one for another use.
func TestStoreLends(t *testing.T) {
	s := &store{kept: newKept()}
	a, _ := borrowLump(t, s, "", 1, 8)
	b, isNew := borrowLump(t, s, "", 1, 8)
	if !isNew || a == b {
		t.Error("a program in use was lent again")
	}
	if c, isNew := borrowLump(t, s, pairCall, 1, 8); !isNew || c == a || c == b {
		t.Error("one for another purpose was lent")
	}
	s.giveBack(a)
	if c, isNew := borrowLump(t, s, "", 1, 8); isNew || c != a {
		t.Error("the free one was not lent")
	}
	s.giveBack(b)
	if c, _ := borrowLump(t, s, "", 1, 8); c != b || s.kept.n != 3 || s.kept.bytes != 24 {
		t.Errorf("the second free one was not lent, or %d programs of %d bytes are kept; want 3 of 24", s.kept.n, s.kept.bytes)
	}
}

// Programs beyond the bounds go, the one used least recently first; one alone stays however large it is.
func TestStoreForgets(t *testing.T) {
	s := &store{kept: newKept()}
	for i := range int64(keptPrograms) {
		x, _ := borrowLump(t, s, "", i, 1)
		s.giveBack(x)
	}
	x, _ := borrowLump(t, s, "", 0, 1) // used again
	s.giveBack(x)
	borrowLump(t, s, "", keptPrograms, 1)
	if _, isNew := borrowLump(t, s, "", 0, 1); isNew {
		t.Error("one was forgotten that had just been used")
	}
	if _, isNew := borrowLump(t, s, "", 1, 1); !isNew || s.kept.n != keptPrograms {
		t.Errorf("the one used least recently is kept, or %d are; want %d", s.kept.n, keptPrograms)
	}
	borrowLump(t, s, "", -1, 2*keptBytes)
	if s.kept.n != 1 || s.kept.bytes != 2*keptBytes {
		t.Errorf("%d programs of %d bytes beside a large one", s.kept.n, s.kept.bytes)
	}
	s.forgetAll()
	if s.kept.n != 0 || s.kept.bytes != 0 {
		t.Errorf("%d programs of %d bytes after all were forgotten", s.kept.n, s.kept.bytes)
	}
}

// One of several for a use goes, wherever it is among them.
func TestStoreForgetsOneOfSeveral(t *testing.T) {
	for gone := range 3 {
		s := &store{kept: newKept()}
		var all []program
		for range 3 {
			x, _ := borrowLump(t, s, "", 1, 8)
			all = append(all, x)
		}
		s.kept.forget(all[gone])
		for _, x := range all {
			s.giveBack(x)
		}
		lent := map[program]bool{}
		for range 2 {
			x, isNew := borrowLump(t, s, "", 1, 8)
			if lent[x] = true; isNew || x == all[gone] {
				t.Errorf("without program %d: new is %v", gone, isNew)
			}
		}
		if len(lent) != 2 || s.kept.n != 2 || s.kept.bytes != 16 {
			t.Errorf("without program %d: %d others, %d kept of %d bytes", gone, len(lent), s.kept.n, s.kept.bytes)
		}
	}
}

// A closed store lends nothing. What was lent can be given back.
func TestStoreCloses(t *testing.T) {
	s := &store{kept: newKept()}
	x, _ := borrowLump(t, s, "", 1, 8)
	if !s.close() || s.close() {
		t.Error("it was open once, and closed afterwards")
	}
	s.giveBack(x)
	s.forgetAll()
	if _, err := s.borrow(use{}, nil); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("borrowed: %v", err)
	}
	if err := s.ready(use{}, nil); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("ready: %v", err)
	}
}
