// Gen writes the AVX2 kernels of package kernel: the assembly and the Go
// declarations beside it. It is a module of its own so that the library does not
// depend on the assembler library. Run it with go generate in package kernel.
package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	block  = 32 // bytes of one register
	unroll = 8
)

// kernel is one operation on one element type: combine emits one block,
// constants loads what all blocks need.
type kernel struct {
	name      string
	constants func()
	combine   func(dst, a, b operand.Mem)
	fence     bool // what it writes must be seen before what is written later
}

func main() {
	build.ConstraintExpr("amd64")
	for _, k := range kernels() {
		k.emit()
	}
	grid()
	build.Generate()
}

// emit writes the loops: unrolled blocks, then single ones. One index counts up
// for all three operands.
func (k kernel) emit() {
	build.TEXT(k.name, build.NOSPLIT, "func(dst, a, b *byte, n int)")
	build.Pragma("noescape")
	dst := build.Load(build.Param("dst"), build.GP64())
	a := build.Load(build.Param("a"), build.GP64())
	b := build.Load(build.Param("b"), build.GP64())
	n := build.Load(build.Param("n"), build.GP64())
	i := build.GP64()
	build.XORQ(i, i)
	if k.constants != nil {
		k.constants()
	}
	at := func(base reg.Register, offset int) operand.Mem {
		return operand.Mem{Base: base, Index: i, Scale: 1, Disp: offset}
	}

	end := build.GP64()
	build.MOVQ(n, end)
	build.ANDQ(operand.I32(-unroll*block), end)
	build.JEQ(operand.LabelRef("tail"))
	build.Label("blocks")
	for offset := 0; offset < unroll*block; offset += block {
		k.combine(at(dst, offset), at(a, offset), at(b, offset))
	}
	build.ADDQ(operand.U32(unroll*block), i)
	build.CMPQ(i, end)
	build.JLT(operand.LabelRef("blocks"))

	build.Label("tail")
	build.CMPQ(i, n)
	build.JGE(operand.LabelRef("done"))
	k.combine(at(dst, 0), at(a, 0), at(b, 0))
	build.ADDQ(operand.U8(block), i)
	build.JMP(operand.LabelRef("tail"))

	build.Label("done")
	if k.fence {
		build.SFENCE()
	}
	build.VZEROUPPER()
	build.RET()
}
