package payload

import (
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

// A block in the place of another shows.
func TestWrongBlocks(t *testing.T) {
	r := tasks.Request{Coll: tasks.Allgather, Count: 100, Type: tasks.Int32}
	blocks, err := Outputs(r, 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 3*400)
	for i, b := range blocks {
		Tile(buf[i*400:][:400], b)
	}
	if n := WrongBlocks(r, 0, buf, blocks); n != 0 {
		t.Errorf("%d of the right elements are wrong", n)
	}
	copy(buf[400:], buf[800:])
	if n := WrongBlocks(r, 0, buf, blocks); n < 80 {
		t.Errorf("%d of 100 elements of the wrong block are wrong", n)
	}
}

// A part of a message in the wrong place shows, and so does what was there before.
func TestWrongElements(t *testing.T) {
	r := tasks.Request{Coll: tasks.Allreduce, Type: tasks.Int8, Op: tasks.Sum}
	all, err := Outputs(r, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := all[0]
	buf := make([]byte, 8192)
	Tile(buf, want)
	if n := wrongElements(buf, want, r.Type); n != 0 {
		t.Errorf("%d of the right elements are wrong", n)
	}
	for shift := 1; shift < len(buf)/2; shift *= 2 {
		moved := append(buf[shift:], buf[:shift]...)
		if n := wrongElements(moved[:64], want, r.Type); n < 8 {
			t.Errorf("moved by %d: %d of 64 elements are wrong", shift, n)
		}
	}
	Tile(buf, Poison)
	if n := wrongElements(buf, want, r.Type); n < int64(len(buf)*9/10) {
		t.Errorf("%d of %d stale elements are wrong", n, len(buf))
	}
}
