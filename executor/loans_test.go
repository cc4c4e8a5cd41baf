package executor

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// room is shared memory of so many bytes.
type room struct{ size, taken int64 }

func (m *room) take(n int64) ([]byte, func(), error) {
	if m.taken+n > m.size {
		return nil, nil, errors.New("full")
	}
	m.taken += n
	return make([]byte, n), func() { m.taken -= n }, nil
}

// However many calls borrow, the pieces taken are as many as calls at the same time, none much
// longer than the longest call needed.
func TestLoansAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &room{size: 1 << 62}
		l := loans{more: m.take}
		var lent []*loan
		var longest int64
		most := 0
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(lent) > 0 && rapid.Bool().Draw(t, "back") {
				i := rapid.IntRange(0, len(lent)-1).Draw(t, "which")
				l.giveBack(lent[i])
				lent = append(lent[:i], lent[i+1:]...)
				continue
			}
			n := rapid.Int64Range(1, 1<<20).Draw(t, "n")
			p, err := l.take(n)
			if err != nil || int64(len(p.mem)) < n {
				t.Fatalf("%d bytes: %v, %v", n, p, err)
			}
			lent = append(lent, p)
			longest, most = max(longest, n), max(most, len(lent))
		}
		if len(lent)+len(l.spare) > most {
			t.Fatalf("%d pieces are lent and %d spare, of at most %d calls at a time", len(lent), len(l.spare), most)
		}
		if bound := int64(most) * (longest*3/2 + loanAlign); m.taken > bound {
			t.Fatalf("%d bytes are taken, over %d: %d calls at a time of at most %d bytes", m.taken, bound, most, longest)
		}
	})
}

// A piece that has been far too long for a thousand calls goes, and where memory is short all spare ones go.
func TestLoansEnd(t *testing.T) {
	m := &room{size: 8 * loanAlign}
	l := loans{more: m.take}
	borrow := func(n int64) *loan {
		t.Helper()
		p, err := l.take(n)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	l.giveBack(borrow(5 * loanAlign))
	l.giveBack(borrow(1))
	l.giveBack(borrow(5 * loanAlign / smallFactor)) // for this one it is not far too long
	for range smallLoans - 1 {
		l.giveBack(borrow(1))
	}
	if m.taken != 5*loanAlign {
		t.Errorf("%d bytes are taken before the last small call, want %d", m.taken, 5*loanAlign)
	}
	l.giveBack(borrow(1))
	if m.taken != 0 {
		t.Errorf("%d bytes are taken after a thousand small calls, want none", m.taken)
	}
	a, b := borrow(3*loanAlign), borrow(3*loanAlign)
	l.giveBack(a)
	l.giveBack(b)
	if _, _, err := l.shared(8 * loanAlign); err != nil {
		t.Errorf("memory that spare pieces had: %v", err)
	}
	if p, err := l.take(1); err == nil {
		t.Errorf("%d bytes of no memory", len(p.mem))
	}
}
