package executor

import "slices"

// loans is the shared memory of one rank for calls whose runs have none of their own
// ([Binding.Borrows]). A call borrows a piece from its begin to its end. There are as many pieces as
// such calls went on at the same time, none longer than one and a half times what the longest call
// needed: however many runs are kept. The engine's lock guards it.
type loans struct {
	more  takeShared
	spare []*loan // the shortest first
}

// loan is a piece of shared memory.
type loan struct {
	mem   []byte
	free  func()
	small int // calls one after the other that needed less than a quarter of it
}

const (
	loanAlign   = 64 << 10 // bytes; lengths of pieces are multiples of it
	smallLoans  = 1000     // after so many calls a piece that is far too long is freed
	smallFactor = 4        // far too long is more than so many times what is needed
)

// take lends n bytes. Unless a spare piece is long enough, the longest one gives way to a new one.
func (l *loans) take(n int64) (*loan, error) {
	for i, p := range l.spare {
		if int64(len(p.mem)) < n {
			continue
		}
		l.spare = slices.Delete(l.spare, i, i+1)
		p.small++
		if n*smallFactor >= int64(len(p.mem)) {
			p.small = 0
		}
		return p, nil
	}
	size := n
	if last := len(l.spare) - 1; last >= 0 {
		old := l.spare[last]
		l.spare = l.spare[:last]
		size = max(n, int64(len(old.mem))*3/2) // lengths that grow by and by shall not take a new piece each
		old.free()
	}
	mem, free, err := l.shared((size + loanAlign - 1) / loanAlign * loanAlign)
	if err != nil {
		mem, free, err = l.shared(n)
	}
	if err != nil {
		return nil, err
	}
	return &loan{mem: mem, free: free}, nil
}

// giveBack ends a loan. Nobody reads the piece any more, or its readers find out that the run was left.
func (l *loans) giveBack(p *loan) {
	if p.small >= smallLoans {
		p.free()
		return
	}
	at, _ := slices.BinarySearchFunc(l.spare, len(p.mem), func(q *loan, n int) int { return len(q.mem) - n })
	l.spare = slices.Insert(l.spare, at, p)
}

// shared takes memory for good. Where there is too little, spare pieces go.
func (l *loans) shared(n int64) ([]byte, func(), error) { return l.insteadOfSpare(l.more, n) }

// insteadOfSpare takes n bytes of shared memory by more. Where there is too little, spare pieces go.
func (l *loans) insteadOfSpare(more takeShared, n int64) (b []byte, free func(), err error) {
	if b, free, err = more(n); err == nil || len(l.spare) == 0 {
		return b, free, err
	}
	for _, p := range l.spare {
		p.free()
	}
	l.spare = nil
	return more(n)
}

// takeShared takes n bytes of shared memory, until they are freed.
type takeShared func(n int64) (b []byte, free func(), err error)
