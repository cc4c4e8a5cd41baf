package tasks

import (
	"fmt"
	"reflect"
)

// ElementOf finds the element type of T if no built-in operation combines elements: that of [DatatypeOf] if
// there is one, else so many bytes. T may be any type without pointers: a bool, an array or a
// struct of such types. Strings, slices, maps, interfaces, channels and functions hold pointers,
// and a uintptr may be one.
func ElementOf[T any]() (Datatype, error) {
	t := reflect.TypeFor[T]()
	if d, ok := findDatatype(t); ok {
		return d, nil
	}
	switch bad := pointerIn(t); {
	case bad == t:
		return 0, fmt.Errorf("type %v can't be an element: it is no use to another rank; allowed are types without pointers", t)
	case bad != nil:
		return 0, fmt.Errorf("type %v can't be an element: its %v is no use to another rank; allowed are types without pointers", t, bad)
	case t.Size() < 1 || t.Size() > MaxElement:
		return 0, fmt.Errorf("type %v can't be an element: it has %d bytes; allowed are 1 to %d", t, t.Size(), MaxElement)
	}
	return movedFlag | Datatype(t.Size())<<movedShift, nil
}

// OperandOf finds the element type of T in a reduction by op: that of [DatatypeOf], or any that op combines, if it
// is of [UserOp]. Bools are bytes to the logical operations.
func OperandOf[T any](op Op) (Datatype, error) {
	t := reflect.TypeFor[T]()
	d, ok := findDatatype(t)
	switch u := op.user; {
	case ok:
		return d, nil
	case u != nil && u.err != nil:
		return 0, op.complaint()
	case u != nil && u.of == t:
		return u.element, nil
	case u != nil:
		return 0, fmt.Errorf("operation %v combines %s, the buffer holds %v", op, u.operands(), t)
	case t.Kind() == reflect.Bool && (op == Land || op == Lor || op == Lxor):
		return Uint8, nil
	}
	return 0, fmt.Errorf("type %v can't be an element of %v: allowed are integers, floats, complex numbers, half.Float16, half.BFloat16 and "+
		"tasks.Loc of a real type, bools in land, lor and lxor, and all types without pointers by an operation of tasks.UserOp", t, op)
}

// pointerIn returns the first type in t that is or may hold a pointer, nil if there is none.
func pointerIn(t reflect.Type) reflect.Type {
	switch k := t.Kind(); {
	case k == reflect.Uintptr:
		return t
	case reflect.Bool <= k && k <= reflect.Complex128:
		return nil
	case k == reflect.Array:
		return pointerIn(t.Elem())
	case k == reflect.Struct:
		for i := range t.NumField() {
			if bad := pointerIn(t.Field(i).Type); bad != nil {
				return bad
			}
		}
		return nil
	}
	return t
}
