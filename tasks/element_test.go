package tasks

import (
	"strings"
	"testing"
	"unsafe"
)

type particle struct {
	At    [3]float64
	Alive bool
	Kind  int16
}

func moves[T any](t *testing.T, want string) {
	t.Helper()
	d, err := ElementOf[T]()
	if err != nil || d.String() != want || d.Size() != int(unsafe.Sizeof(*new(T))) || !d.Valid() {
		t.Errorf("ElementOf[%T] = %v of %d bytes, %v; want %s", *new(T), d, d.Size(), err, want)
	}
	if _, err := DatatypeOf[T](); d.IsMovedOnly() != (err != nil) {
		t.Errorf("%v is only moved: %v; as what is combined: %v", d, d.IsMovedOnly(), err)
	}
}

// What operations combine keeps its type; anything else without pointers is so many bytes.
func TestElementOf(t *testing.T) {
	moves[float32](t, "f32")
	moves[Loc[int64]](t, "loc(i64)")
	moves[bool](t, "bytes(1)")
	moves[[3]int16](t, "bytes(6)")
	moves[particle](t, "bytes(32)")
	moves[[2]particle](t, "bytes(64)")
	moves[[MaxElement]byte](t, "bytes(8388607)")
}

func staysHere[T any](t *testing.T, want string) {
	t.Helper()
	if d, err := ElementOf[T](); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("ElementOf[%T] = %v, %v; want an error with %q", *new(T), d, err, want)
	}
}

func TestElementOfRefusesPointers(t *testing.T) {
	staysHere[string](t, "type string can't be an element: it is no use")
	staysHere[uintptr](t, "type uintptr")
	staysHere[*int](t, "type *int")
	staysHere[[]byte](t, "type []uint8")
	staysHere[any](t, "type interface {}")
	staysHere[struct{ Inner [2]struct{ Name string } }](t, "its string is no use")
	staysHere[struct{}](t, "it has 0 bytes; allowed are 1 to 8388607")
	staysHere[[MaxElement + 1]byte](t, "it has 8388608 bytes")
}

// Only a caller's operation combines records, and those of its own type.
func TestRecordsAreCombinedByOwnOperations(t *testing.T) {
	d, err := ElementOf[particle]()
	if err != nil {
		t.Fatal(err)
	}
	if err := (Request{Coll: Bcast, Count: 3, Type: d}).Validate(2); err != nil {
		t.Error(err)
	}
	err = Request{Coll: Scan, Count: 3, Type: d, Op: Sum}.Validate(2)
	if err == nil || !strings.Contains(err.Error(), "bytes(32)") {
		t.Errorf("error %v, want one that names the type", err)
	}
	first := UserOp("first", false, func(a, _ particle) particle { return a })
	if of, err := OperandOf[particle](first); of != d || err != nil {
		t.Errorf("operand %v, %v; want %v", of, err, d)
	}
	if err := (Request{Coll: Scan, Count: 3, Type: d, Op: first}).Validate(2); err != nil {
		t.Error(err)
	}
	type as particle
	if of, err := OperandOf[as](first); err == nil || !strings.Contains(err.Error(), "operation first combines tasks.particle, the buffer holds tasks.as") {
		t.Errorf("operand %v, %v; want an error that names both types", of, err)
	}
	if other := UserOp("first", false, func(a, _ as) as { return a }); other.Signature() == first.Signature() {
		t.Errorf("%s: two types have one signature", first.Signature())
	}
	for _, wrong := range []Datatype{movedFlag, d | Int8, d | locFlag} {
		if wrong.Valid() || wrong.Size() != 0 {
			t.Errorf("%v of %d bytes is valid", wrong, wrong.Size())
		}
	}
}
