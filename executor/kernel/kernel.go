package kernel

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// Func combines element-wise: dst[i] = a[i] ⊕ b[i], where a is the operand of the
// lower ranks. The three slices have the same length in bytes, a multiple of the
// element size, and start at a multiple of the element's alignment. dst may be
// exactly a or exactly b; it must not overlap them partly. A Func may be called
// from several goroutines at once.
type Func func(dst, a, b []byte)

// For returns the kernel of op on elements of type t. It is an error if op isn't
// defined on t; a user operation is defined on its own T only.
func For(op tasks.Op, t tasks.Datatype) (Func, error) {
	switch {
	case !t.Valid():
		return nil, fmt.Errorf("kernel: %v of invalid datatype %v", op, t)
	case !op.Valid():
		return nil, fmt.Errorf("kernel: invalid operation %v", op)
	case op.ID() == tasks.OpUser:
		f, err := op.Kernel(t)
		if err != nil {
			return nil, fmt.Errorf("kernel: %w", err)
		}
		return f, nil
	}
	f, _ := choose(op.ID(), t)
	if f == nil {
		return nil, fmt.Errorf("kernel: %v is not defined on %v: it is on %s; %v has %s", op, t, typesOf(op), t, opsOf(t))
	}
	return f, nil
}

// Impl names the implementation from [For] for a built-in operation:
// "avx2" (assembly), "go", or "" where op isn't defined on t.
func Impl(op tasks.Op, t tasks.Datatype) string {
	_, name := choose(op.ID(), t)
	return name
}

// Describe is a table of [Impl]: a line per element type, a column per operation.
func Describe() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%-9s", "")
	for _, op := range tasks.Ops() {
		fmt.Fprintf(&s, " %-7v", op)
	}
	for _, t := range types() {
		fmt.Fprintf(&s, "\n%-9v", t)
		for _, op := range tasks.Ops() {
			name := Impl(op, t)
			if name == "" {
				name = "-"
			}
			fmt.Fprintf(&s, " %-7s", name)
		}
	}
	return s.String() + "\n"
}

// choose prefers assembly; name is "" and f nil where op isn't defined on t.
func choose(op tasks.OpID, t tasks.Datatype) (f Func, name string) {
	if f = portable(op, t); f == nil {
		return nil, ""
	}
	if fast, name := assembly(op, t); fast != nil {
		return announce(inBlocks(fast, f)), name
	}
	return f, "go"
}

// types lists all element types, those with an index last.
func types() []tasks.Datatype {
	all := tasks.Datatypes()
	for _, t := range tasks.Datatypes() {
		if loc := tasks.LocOf(t); loc.Valid() {
			all = append(all, loc)
		}
	}
	return all
}

func typesOf(op tasks.Op) string {
	var names []string
	for _, t := range types() {
		if portable(op.ID(), t) != nil {
			names = append(names, t.String())
		}
	}
	return strings.Join(names, " ")
}

func opsOf(t tasks.Datatype) string {
	var names []string
	for _, op := range tasks.Ops() {
		if portable(op.ID(), t) != nil {
			names = append(names, op.String())
		}
	}
	return strings.Join(names, " ")
}
