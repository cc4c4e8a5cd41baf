package tasks

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// OpID names a built-in reduction; OpUser stands for a function of the caller.
type OpID uint8

// The built-in reductions. Zero is invalid.
const (
	_ OpID = iota
	OpSum
	OpProd
	OpMin
	OpMax
	OpMinLoc
	OpMaxLoc
	OpBand
	OpBor
	OpBxor
	OpLand
	OpLor
	OpLxor
	OpAverage
	OpUser
	maxOp
)

var opNames = [maxOp]string{
	OpSum: "sum", OpProd: "prod", OpMin: "min", OpMax: "max", OpMinLoc: "minloc", OpMaxLoc: "maxloc",
	OpBand: "band", OpBor: "bor", OpBxor: "bxor", OpLand: "land", OpLor: "lor", OpLxor: "lxor",
	OpAverage: "average", OpUser: "user",
}

// Op is a reduction operation. The built-in ones are the variables below; a
// caller's own comes from [UserOp]. All of them are associative as far as
// rounding goes; only user operations may be non-commutative. Ops compare with
// ==; each call of [UserOp] makes a new one.
type Op struct {
	id   OpID
	user *userOp
}

// userOp is what UserOp knows of the caller's T.
type userOp struct {
	name        string
	commutative bool
	slices      any                    // func(dst, a, b []T)
	bytes       func(dst, a, b []byte) // the same on the bytes of elements
	element     Datatype
	of          reflect.Type // T
	err         error        // why T can't be an element
}

// The built-in operations. Semantics are those of package kernel: NaN
// propagates through Min and Max, −0 orders below +0, integers wrap. Average of n
// ranks is their sum, divided by n once at the end: values of more than 1/n of the
// type's largest may give an infinity. Float16 is divided by a power of two before
// the sum, too, and takes values of up to half of its largest; where those are below
// n × 2⁻¹³ that moves the mean by less than n × 2⁻²⁴. Integers have no Average.
var (
	Sum     = Op{id: OpSum}
	Prod    = Op{id: OpProd}
	Min     = Op{id: OpMin}
	Max     = Op{id: OpMax}
	MinLoc  = Op{id: OpMinLoc}
	MaxLoc  = Op{id: OpMaxLoc}
	Band    = Op{id: OpBand}
	Bor     = Op{id: OpBor}
	Bxor    = Op{id: OpBxor}
	Land    = Op{id: OpLand}
	Lor     = Op{id: OpLor}
	Lxor    = Op{id: OpLxor}
	Average = Op{id: OpAverage}
	Avg     = Average // the same operation
)

// UserOp is a caller's operation: combine(a, b) for two elements, a from the lower ranks. It
// must be associative. All ranks must give the same operation the same name: they compare its
// [Op.Signature], as functions can't be compared. A name of a built-in operation is allowed, and
// another operation. A non-commutative operation restricts the plan to those that keep rank
// order. T may be any type that can be moved, see [ElementOf]: a struct of numbers, say. Buffers then have
// elements of the same type; types of one kind, such as float64 and a type made of it, are the same here.
// Without a function the operation is not [Op.Valid].
//
// A call runs combine on a goroutine of its own, one element after the other; calls on different communicators may run it
// at the same time. A panic, or runtime.Goexit, fails the call on all ranks. While combine blocks, only its call waits. It
// may use communicators, but for collectives on that of its call.
func UserOp[T any](name string, commutative bool, combine func(a, b T) T) Op {
	u := &userOp{name: name, commutative: commutative}
	if combine == nil {
		u.err = errors.New("its function is nil")
		return Op{id: OpUser, user: u}
	}
	slices := func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = combine(a[i], b[i])
		}
	}
	u.slices = slices
	if u.element, u.err = ElementOf[T](); u.err == nil {
		u.of = reflect.TypeFor[T]()
		u.bytes = func(dst, a, b []byte) { slices(elements[T](dst), elements[T](a), elements[T](b)) }
	}
	return Op{id: OpUser, user: u}
}

// UserOpWithIdentity is [UserOp] for an operation with a neutral element. The claim is tried:
// [Op.Kernel] returns an error, before any data is combined, if the identity combined with
// itself gives something else.
func UserOpWithIdentity[T comparable](name string, commutative bool, identity T, combine func(a, b T) T) Op {
	o := UserOp(name, commutative, combine)
	if o.user.err == nil {
		if got := combine(identity, identity); got != identity {
			o.user.err = fmt.Errorf("%v is no identity: combined with itself it gives %v", identity, got)
		}
	}
	return o
}

// elements views bytes as the elements they hold.
func elements[T any](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// ID identifies the operation.
func (o Op) ID() OpID { return o.id }

// Valid reports whether o is an operation.
func (o Op) Valid() bool {
	return o.id > 0 && o.id < maxOp && (o.id != OpUser || o.user != nil && o.user.slices != nil)
}

// Signature tells apart operations that differ: ranks that reduce with operations of
// one signature do the same, as far as names tell. A built-in operation's is its
// name; a user operation's is its name in quotes, the element type, and whether
// operands may change places.
func (o Op) Signature() string {
	if o.user == nil {
		return o.String()
	}
	order := "commutative"
	if !o.user.commutative {
		order = "non-commutative"
	}
	return fmt.Sprintf("%q %v %s", o.user.name, o.user.operands(), order)
}

// operands names what a user operation combines: f64, or main.stat where no built-in operation does.
func (u *userOp) operands() string {
	if u.element.IsMovedOnly() {
		return u.of.String()
	}
	return u.element.String()
}

// complaint is why o is not [Op.Valid].
func (o Op) complaint() error {
	if o.user != nil {
		return fmt.Errorf("operation %v: %w", o, o.user.err)
	}
	return fmt.Errorf("operation %v is not a reduction; allowed are those such as tasks.Sum, and what tasks.UserOp makes", o)
}

// Commutative reports whether operands may change places.
func (o Op) Commutative() bool { return o.user == nil || o.user.commutative }

// Func is the slice form of a user operation, a func(dst, a, b []T), else nil.
func (o Op) Func() any {
	if o.user == nil {
		return nil
	}
	return o.user.slices
}

// Kernel is a user operation on the bytes of elements of type t, for slices of
// equal length aligned to t; dst may be a or b. It is an error if the
// operation's T is something else than t, or o isn't a user operation.
func (o Op) Kernel(t Datatype) (func(dst, a, b []byte), error) {
	switch {
	case o.user == nil:
		return nil, fmt.Errorf("operation %v has no function of the caller", o)
	case o.user.err != nil:
		return nil, fmt.Errorf("operation %v: %w", o, o.user.err)
	case o.user.element != t:
		return nil, fmt.Errorf("operation %v combines %s, the buffer holds %v", o, o.user.operands(), t)
	}
	return o.user.bytes, nil
}

// String is the operation's name; a user operation's own.
func (o Op) String() string {
	switch {
	case o.user != nil:
		return o.user.name
	case o.id > 0 && o.id < maxOp:
		return opNames[o.id]
	}
	return fmt.Sprintf("Op(%d)", o.id)
}

// Ops lists the built-in operations.
func Ops() []Op {
	all := make([]Op, 0, OpUser-1)
	for id := OpSum; id < OpUser; id++ {
		all = append(all, Op{id: id})
	}
	return all
}

// ParseOp finds a built-in operation by its name.
func ParseOp(s string) (Op, error) {
	known := make([]string, 0, maxOp)
	for _, o := range Ops() {
		if o.String() == s {
			return o, nil
		}
		known = append(known, o.String())
	}
	return Op{}, fmt.Errorf("unknown operation %q; known are %s", s, strings.Join(known, ", "))
}
