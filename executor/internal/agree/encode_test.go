package agree

import (
	"bytes"
	"testing"
)

// samples are messages of five ranks, of each kind.
func samples() []Message {
	d := &Decision{ID: 1<<40 + 7, Members: Of(0, 2, 4), Lost: Of(1, 3), Proven: Of(3), Calls: [2]uint32{9, 12}, OK: true}
	return []Message{
		{Kind: Start, From: 0, To: 4, Lost: Of(1, 3), Proven: Of(3)},
		{Kind: Start, From: 0, To: 4, Lost: Of(1), Missing: Of(2, 3)},
		{Kind: Vote, From: 2, To: 0, Lost: Of(1), Calls: 11, OK: true},
		{Kind: Start, From: 0, To: 4, Lost: Of(1, 3), Left: Of(1), Missing: Of(2)},
		{Kind: Vote, From: 4, To: 2, Lost: Of(0, 1, 3), Proven: Of(0, 1, 3), Ballot: Ballot{0, 2}, Value: d, Calls: 12},
		{Kind: Propose, From: 0, To: 2, Lost: Of(1, 3), Ballot: Ballot{0, 2}, Value: d},
		{Kind: Accepted, From: 2, To: 0, Lost: Of(1, 3), Ballot: Ballot{0, 2}},
		{Kind: Decide, From: 0, To: 1, Lost: Of(1, 3), Value: d},
	}
}

func TestMessagesTravel(t *testing.T) {
	for _, m := range samples() {
		for _, n := range []int{5, 64, 65, 300} {
			b := m.Append(nil, n)
			got, err := Parse(b, n)
			if err != nil {
				t.Fatalf("%+v of %d ranks: %v", m, n, err)
			}
			if hashMessage(&got) != hashMessage(&m) {
				t.Errorf("%+v arrived as %+v", m, got)
			}
			for cut := range b {
				if _, err := Parse(b[:cut], n); err == nil {
					t.Errorf("%+v: the first %d of %d bytes are a message", m, cut, len(b))
				}
			}
			if _, err := Parse(append(b, 0), n); err == nil {
				t.Errorf("%+v: a byte more is a message", m)
			}
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range samples() {
		f.Add(m.Append(nil, 5))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b, 5)
		if err != nil {
			return
		}
		if again := m.Append(nil, 5); !bytes.Equal(again, b) {
			t.Errorf("% x is % x again", b, again)
		}
		// A machine takes whatever can be read.
		machine := New(Config{Size: 5, Rank: m.To})
		machine.Begin(1, true)
		machine.Hear(m)
		if lost, proven := machine.Lost(); lost.Has(m.To) || !lost.Includes(proven) {
			t.Errorf("after %+v rank %d counts %v as lost, %v as proven", m, m.To, lost.Ranks(), proven.Ranks())
		}
	})
}
