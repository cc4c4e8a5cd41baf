package tasks

import (
	"strings"
	"testing"
	"unsafe"
)

func TestOpNames(t *testing.T) {
	seen := map[Op]bool{}
	for _, o := range Ops() {
		if got, err := ParseOp(o.String()); got != o || err != nil || seen[o] || !o.Valid() || !o.Commutative() {
			t.Errorf("ParseOp(%q) = %v, %v", o, got, err)
		}
		seen[o] = true
	}
	if !seen[Sum] || !seen[Average] || len(seen) != int(OpUser)-1 {
		t.Errorf("Ops() lists %v", Ops())
	}
	for _, s := range []string{"", "user", "add"} {
		if _, err := ParseOp(s); err == nil || !strings.Contains(err.Error(), "maxloc") {
			t.Errorf("ParseOp(%q): error %v; want one that lists the names", s, err)
		}
	}
	for _, o := range []Op{{}, {id: maxOp}, {id: OpUser}, UserOp[int]("nothing", true, nil)} {
		if o.Valid() {
			t.Errorf("%v is valid", o)
		}
	}
}

func TestUserOp(t *testing.T) {
	minus := UserOp("minus", false, func(a, b celsius) celsius { return a - b })
	if minus.ID() != OpUser || minus.Commutative() || minus.String() != "minus" || !minus.Valid() {
		t.Errorf("operation %v, id %d, commutative %t, valid %t", minus, minus.ID(), minus.Commutative(), minus.Valid())
	}
	dst := make([]celsius, 2)
	minus.Func().(func(dst, a, b []celsius))(dst, []celsius{5, 6}, []celsius{1, 1})
	if dst[0] != 4 || dst[1] != 5 {
		t.Errorf("Func gave %v, want 4 and 5", dst)
	}
	f, err := minus.Kernel(Float64)
	if err != nil {
		t.Fatal(err)
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 16)
	f(b, b, b)
	if dst[0] != 0 || dst[1] != 0 {
		t.Errorf("Kernel gave %v, want zeros", dst)
	}
	f(b[:0], nil, nil)
}

func TestUserOpMismatch(t *testing.T) {
	for _, c := range []struct {
		op   Op
		d    Datatype
		want string
	}{
		{UserOp("add", true, func(a, b int32) int32 { return a + b }), Uint32, "operation add combines i32, the buffer holds u32"},
		{UserOp("join", true, func(a, b string) string { return a + b }), Int8, "operation join: type string"},
		{Sum, Int8, "sum"},
	} {
		if f, err := c.op.Kernel(c.d); f != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v.Kernel(%v): error %v, want one with %q", c.op, c.d, err, c.want)
		}
	}
	if Sum.Func() != nil {
		t.Error("Sum has a function of the caller")
	}
}

func TestUserOpWithIdentity(t *testing.T) {
	times := func(a, b int32) int32 { return a * b }
	if _, err := UserOpWithIdentity("times", true, 1, times).Kernel(Int32); err != nil {
		t.Error(err)
	}
	const want = "operation times: 2 is no identity: combined with itself it gives 4"
	if _, err := UserOpWithIdentity("times", true, 2, times).Kernel(Int32); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	if UserOpWithIdentity[int32]("nothing", true, 0, nil).Valid() {
		t.Error("an operation without a function is valid")
	}
}
