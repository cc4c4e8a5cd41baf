package tasks

import (
	"fmt"
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
		{UserOp[int8]("none", true, nil), Int8, "operation none: its function is nil"},
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

// Different operations have different signatures, even if a name tries to fake
// another's.
func TestOpSignatures(t *testing.T) {
	first := func(a, _ float64) float64 { return a }
	named := []string{
		"", " ", "sum", `"sum"`, `\"sum\"`, `sum" f64 commutative`, `"sum" f64 commutative`, `sum\`, "sum\n", `sum\n`,
		"sum\x00", `sum\x00`, "\xff", "\ufffd", `\xff`, "Op(0)", "user", "sum|", "súm", "su\u0301m",
	}
	seen := map[string]string{}
	add := func(what string, o Op) {
		if before, ok := seen[o.Signature()]; ok {
			t.Errorf("%s and %s have the same signature, %s", before, what, o.Signature())
		}
		seen[o.Signature()] = what
	}
	for _, o := range Ops() {
		add("built-in "+o.String(), o)
	}
	for _, name := range named {
		add(fmt.Sprintf("commutative %q", name), UserOp(name, true, first))
		add(fmt.Sprintf("non-commutative %q", name), UserOp(name, false, first))
		add(fmt.Sprintf("%q of int32", name), UserOp(name, true, func(a, _ int32) int32 { return a }))
	}
	same, want := UserOp("mean", true, first), `"mean" f64 commutative`
	if got := same.Signature(); got != want || got != UserOpWithIdentity("mean", true, celsius(0), func(a, b celsius) celsius { return a + b }).Signature() {
		t.Errorf("the signature is %s; want %s, for each operation of that name on such elements", got, want)
	}
	if got := same.String(); got != "mean" {
		t.Errorf("the name is %q", got)
	}
}
