package clock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The conversation: the asker sends its name, and the other answers with its own. Then
// the asker sends numbers from 1 on, and each comes back with two times.
const (
	askBytes    = 8
	answerBytes = 24
)

// [Ask] ends early when the error has been at most enough, ns, for enoughFor pings
// in a row.
const (
	enough    = 5_000
	enoughFor = 10
)

// Ask compares the clock behind now with the clock of [Answer] at the other end of a
// connection, by at most so many pings. id names the clock; if the other one has the same
// nothing is measured, and same is true. It fails if the connection does, and if a clock
// has stepped meanwhile.
func Ask(rw io.ReadWriter, now func() int64, id uint64, pings int) (f Fix, same bool, err error) {
	var out [askBytes]byte
	var in [answerBytes]byte
	binary.LittleEndian.PutUint64(out[:], id)
	if _, err = rw.Write(out[:]); err == nil {
		_, err = io.ReadFull(rw, in[:askBytes])
	}
	if err != nil {
		return f, false, fmt.Errorf("compare clocks: %w", err)
	}
	if binary.LittleEndian.Uint64(in[:]) == id {
		return Fix{}, true, nil
	}
	var all []Ping
	ok, good := false, 0
	for n := 1; n <= pings && good < enoughFor; n++ {
		binary.LittleEndian.PutUint64(out[:], uint64(n))
		p := Ping{T1: now()}
		if _, err = rw.Write(out[:]); err == nil {
			_, err = io.ReadFull(rw, in[:])
		}
		p.T4 = now()
		if err != nil {
			return f, false, fmt.Errorf("compare clocks: ping %d: %w", n, err)
		}
		if got := binary.LittleEndian.Uint64(in[:]); got != uint64(n) {
			return f, false, fmt.Errorf("compare clocks: ping %d is answered as %d", n, got)
		}
		p.T2, p.T3 = int64(binary.LittleEndian.Uint64(in[8:])), int64(binary.LittleEndian.Uint64(in[16:]))
		all = append(all, p)
		if f, ok = Estimate(all, Quartz); !ok {
			return f, false, fmt.Errorf("compare clocks: ping %d contradicts those before: a clock has stepped", n)
		}
		if good++; f.Error > enough {
			good = 0
		}
	}
	if !ok {
		return f, false, fmt.Errorf("compare clocks: %d pings are too few", pings)
	}
	return f, false, nil
}

// Answer answers [Ask] until the connection ends. This end is no error.
func Answer(rw io.ReadWriter, now func() int64, id uint64) error {
	var in [askBytes]byte
	var out [answerBytes]byte
	if _, err := io.ReadFull(rw, in[:]); err != nil {
		return ended(err)
	}
	binary.LittleEndian.PutUint64(out[:], id)
	if _, err := rw.Write(out[:askBytes]); err != nil {
		return ended(err)
	}
	for {
		if _, err := io.ReadFull(rw, in[:]); err != nil {
			return ended(err)
		}
		heard := now()
		copy(out[:], in[:])
		binary.LittleEndian.PutUint64(out[8:], uint64(heard))
		binary.LittleEndian.PutUint64(out[16:], uint64(now()))
		if _, err := rw.Write(out[:]); err != nil {
			return ended(err)
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("compare clocks: %w", err)
}
