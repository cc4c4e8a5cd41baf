package tasks

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/tierflow/tierflow/tasks/half"
)

type celsius float64

func checkDatatype[T any](t *testing.T, want Datatype) {
	t.Helper()
	got, err := DatatypeOf[T]()
	if err != nil || got != want {
		t.Errorf("DatatypeOf[%T] = %v, %v; want %v", *new(T), got, err, want)
	}
	if int(unsafe.Sizeof(*new(T))) != got.Size() {
		t.Errorf("%v: %d bytes, Size says %d", got, unsafe.Sizeof(*new(T)), got.Size())
	}
}

func TestDatatypeOf(t *testing.T) {
	checkDatatype[int8](t, Int8)
	checkDatatype[int](t, Int64)
	checkDatatype[uint](t, Uint64)
	checkDatatype[uint16](t, Uint16)
	checkDatatype[half.Float16](t, Float16)
	checkDatatype[half.BFloat16](t, BFloat16)
	checkDatatype[celsius](t, Float64)
	checkDatatype[complex64](t, Complex64)
	checkDatatype[complex128](t, Complex128)
	checkDatatype[Loc[int8]](t, LocOf(Int8))
	checkDatatype[Loc[celsius]](t, LocOf(Float64))
	checkDatatype[Loc[half.Float16]](t, LocOf(Float16))
}

func refuse[T any](t *testing.T) {
	t.Helper()
	if d, err := DatatypeOf[T](); err == nil || !strings.Contains(err.Error(), "allowed are") {
		t.Errorf("DatatypeOf[%T] = %v, %v; want an error that lists what is allowed", *new(T), d, err)
	}
}

func TestDatatypeOfRefuses(t *testing.T) {
	refuse[bool](t)
	refuse[string](t)
	refuse[any](t)
	refuse[[2]float64](t)
	refuse[*float64](t)
	refuse[*Loc[float64]](t)
	refuse[struct{ Loc[float64] }](t)
	refuse[struct {
		N int32
		Loc[float64]
	}](t)
}

func TestDatatypeNames(t *testing.T) {
	for _, d := range Datatypes() {
		for _, x := range []Datatype{d, LocOf(d)} {
			if !x.Valid() {
				continue
			}
			if got, err := ParseDatatype(x.String()); got != x || err != nil {
				t.Errorf("ParseDatatype(%q) = %v, %v", x, got, err)
			}
		}
	}
	for _, s := range []string{"", "float", "loc(c64)", "loc()", "F32"} {
		if d, err := ParseDatatype(s); err == nil || !strings.Contains(err.Error(), "bf16") {
			t.Errorf("ParseDatatype(%q) = %v, %v; want an error that lists the names", s, d, err)
		}
	}
}

func TestDatatypeValid(t *testing.T) {
	for _, d := range []Datatype{0, maxDatatype, LocOf(0), LocOf(Complex64), LocOf(maxDatatype), 255} {
		if d.Valid() || d.Size() != 0 || !strings.HasPrefix(d.String(), "Datatype(") {
			t.Errorf("%v: valid %t, size %d; want neither", d, d.Valid(), d.Size())
		}
	}
	if v, ok := LocOf(Int32).Loc(); v != Int32 || !ok {
		t.Errorf("LocOf(Int32).Loc() = %v, %t", v, ok)
	}
}
