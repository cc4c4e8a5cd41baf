package tasks

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/tierflow/tierflow/tasks/half"
)

// Datatype names the element type of a buffer: one that built-in operations combine, or bytes that are
// only moved, or combined by an operation of [UserOp], see [ElementOf]. The zero value is invalid.
type Datatype uint32

// The element types. Byte counts are those of [Datatype.Size].
const (
	_ Datatype = iota
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16
	BFloat16
	Float32
	Float64
	Complex64
	Complex128
	maxDatatype

	// locFlag marks a value with an index ([Loc]): locFlag|Float64 is a
	// Loc[float64].
	locFlag Datatype = 1 << 7

	// movedFlag marks an element that is only moved: movedFlag|24<<movedShift is one of 24
	// bytes.
	movedFlag  Datatype = 1 << 8
	movedShift          = 9
)

// MaxElement is the largest size of an element that is only moved, bytes.
const MaxElement = 1<<(32-movedShift) - 1

var datatypes = [maxDatatype]struct {
	name string
	size int
}{
	Int8: {"i8", 1}, Int16: {"i16", 2}, Int32: {"i32", 4}, Int64: {"i64", 8},
	Uint8: {"u8", 1}, Uint16: {"u16", 2}, Uint32: {"u32", 4}, Uint64: {"u64", 8},
	Float16: {"f16", 2}, BFloat16: {"bf16", 2}, Float32: {"f32", 4}, Float64: {"f64", 8},
	Complex64: {"c64", 8}, Complex128: {"c128", 16},
}

// Loc is a value and the place where it was found: the element type of MinLoc and MaxLoc. It
// takes 16 bytes for every T with a real order.
type Loc[T LocValue] struct {
	Value T
	Index int64
}

// LocValue lists the value types of a [Loc].
type LocValue interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// LocOf returns the datatype of a [Loc] with a value of type t.
func LocOf(t Datatype) Datatype { return t | locFlag }

// Loc reports whether t is a value with an index, and the value's type.
func (t Datatype) Loc() (value Datatype, ok bool) { return t &^ locFlag, t&locFlag != 0 }

// Valid reports whether t names an element type. Complex numbers have no order,
// so there is no Loc of them.
func (t Datatype) Valid() bool {
	if t.IsMovedOnly() {
		return t>>movedShift > 0 && t&(movedFlag-1) == 0
	}
	v, loc := t.Loc()
	return v > 0 && v < maxDatatype && !(loc && (v == Complex64 || v == Complex128))
}

// IsMovedOnly reports whether no built-in operation combines such elements.
func (t Datatype) IsMovedOnly() bool { return t&movedFlag != 0 }

// Size is the bytes of one element.
func (t Datatype) Size() int {
	if !t.Valid() {
		return 0
	}
	if t.IsMovedOnly() {
		return int(t >> movedShift)
	}
	if _, loc := t.Loc(); loc {
		return 16
	}
	return datatypes[t].size
}

// String is the short name: i32, f64, bf16, loc(f64).
func (t Datatype) String() string {
	if !t.Valid() {
		return fmt.Sprintf("Datatype(%d)", uint32(t))
	}
	if t.IsMovedOnly() {
		return fmt.Sprintf("bytes(%d)", t.Size())
	}
	if v, loc := t.Loc(); loc {
		return "loc(" + v.String() + ")"
	}
	return datatypes[t].name
}

// Datatypes lists the element types without the [Loc] ones.
func Datatypes() []Datatype {
	all := make([]Datatype, 0, maxDatatype-1)
	for t := Int8; t < maxDatatype; t++ {
		all = append(all, t)
	}
	return all
}

// ParseDatatype is the inverse of [Datatype.String].
func ParseDatatype(s string) (Datatype, error) {
	known := ""
	for _, t := range Datatypes() {
		loc := LocOf(t)
		switch {
		case s == t.String():
			return t, nil
		case loc.Valid() && s == loc.String():
			return loc, nil
		}
		known += " " + t.String()
	}
	return 0, fmt.Errorf("unknown datatype %q; known are%s, and loc(…) of the real ones", s, known)
}

// DatatypeOf finds the element type of T by its kind: named types (type Celsius float64) are
// reduced as their underlying ones. A type made of a half one (type H half.Float16) is an
// exception: its kind is uint16.
func DatatypeOf[T any]() (Datatype, error) {
	t := reflect.TypeFor[T]()
	d, ok := findDatatype(t)
	if !ok {
		return 0, fmt.Errorf("type %v can't be an element: allowed are integers, floats, complex numbers, half.Float16, half.BFloat16 and tasks.Loc of a real type", t)
	}
	return d, nil
}

// findDatatype finds the type of elements that operations combine.
func findDatatype(t reflect.Type) (Datatype, bool) {
	d, ok := scalarOf(t)
	if !ok && isLoc(t) {
		d, ok = scalarOf(t.Field(0).Type)
		d = LocOf(d)
	}
	return d, ok && d.Size() == int(t.Size()) // int and Loc have other sizes on 32-bit machines
}

func scalarOf(t reflect.Type) (Datatype, bool) {
	switch t {
	case reflect.TypeFor[half.Float16]():
		return Float16, true
	case reflect.TypeFor[half.BFloat16]():
		return BFloat16, true
	}
	d, ok := kinds[t.Kind()]
	return d, ok
}

// isLoc tells a Loc from any other type, also from one that embeds a Loc.
func isLoc(t reflect.Type) bool {
	return t.PkgPath() == reflect.TypeFor[Loc[int8]]().PkgPath() && strings.HasPrefix(t.Name(), "Loc[")
}

var kinds = map[reflect.Kind]Datatype{
	reflect.Int8: Int8, reflect.Int16: Int16, reflect.Int32: Int32, reflect.Int64: Int64, reflect.Int: Int64,
	reflect.Uint8: Uint8, reflect.Uint16: Uint16, reflect.Uint32: Uint32, reflect.Uint64: Uint64, reflect.Uint: Uint64,
	reflect.Float32: Float32, reflect.Float64: Float64,
	reflect.Complex64: Complex64, reflect.Complex128: Complex128,
}
