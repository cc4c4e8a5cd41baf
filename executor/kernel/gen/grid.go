package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes is how many elements of 32 bits a register has.
const lanes = 8

// grid emits the loops between float32 and multiples of a power of two. All take elements that are a
// multiple of lanes, and at least so many.
func grid() {
	largest()
	addMultiples()
	multiply()
}

// loop emits a loop over n elements of 32 bits; body is given the index.
func loop(n reg.Register, body func(i reg.Register)) {
	i := build.GP64()
	build.XORQ(i, i)
	build.Label("blocks")
	body(i)
	build.ADDQ(operand.U8(lanes), i)
	build.CMPQ(i, n)
	build.JLT(operand.LabelRef("blocks"))
}

// word is element i of a slice of 32-bit ones, and more behind it.
func word(base, i reg.Register, more int) operand.Mem {
	return operand.Mem{Base: base, Index: i, Scale: 4, Disp: 4 * more}
}

// largest is the maximum of bits without the sign.
func largest() {
	build.TEXT("largestF32", build.NOSPLIT, "func(x *float32, n int) uint32")
	build.Pragma("noescape")
	x, n := build.Load(build.Param("x"), build.GP64()), build.Load(build.Param("n"), build.GP64())
	magnitude, most := shifted(build.VPSRLD, 1), build.YMM()
	build.VPXOR(most, most, most)
	loop(n, func(i reg.Register) {
		b := build.YMM()
		build.VPAND(word(x, i, 0), magnitude, b)
		build.VPMAXUD(b, most, most)
	})
	half, low := build.XMM(), most.AsX()
	build.VEXTRACTI128(operand.U8(1), most, half)
	build.VPMAXUD(half, low, low)
	for _, swap := range []uint8{0x4e, 0xb1} { // halves, then neighbours
		build.VPSHUFD(operand.U8(swap), low, half)
		build.VPMAXUD(half, low, low)
	}
	found := build.GP32()
	build.VMOVD(low, found)
	build.Store(found, build.ReturnIndex(0))
	end()
}

// addMultiples adds x·scale, rounded to nearest even, to acc.
func addMultiples() {
	build.TEXT("addMultiplesF32", build.NOSPLIT, "func(acc *int32, x *float32, n int, scale float64)")
	build.Pragma("noescape")
	acc, x := build.Load(build.Param("acc"), build.GP64()), build.Load(build.Param("x"), build.GP64())
	n, scale := build.Load(build.Param("n"), build.GP64()), broadcast("scale")
	loop(n, func(i reg.Register) {
		for half := 0; half < lanes; half += lanes / 2 {
			wide, whole := build.YMM(), build.XMM()
			build.VCVTPS2PD(word(x, i, half), wide)
			build.VMULPD(scale, wide, wide)
			build.VCVTPD2DQY(wide, whole)
			build.VPADDD(word(acc, i, half), whole, whole)
			build.VMOVDQU(whole, word(acc, i, half))
		}
	})
	end()
}

// multiply makes dst of q·grid, rounded once.
func multiply() {
	build.TEXT("multiplyF32", build.NOSPLIT, "func(dst *float32, q *int32, n int, grid float64)")
	build.Pragma("noescape")
	dst, q := build.Load(build.Param("dst"), build.GP64()), build.Load(build.Param("q"), build.GP64())
	n, g := build.Load(build.Param("n"), build.GP64()), broadcast("grid")
	loop(n, func(i reg.Register) {
		for half := 0; half < lanes; half += lanes / 2 {
			wide, narrow := build.YMM(), build.XMM()
			build.VCVTDQ2PD(word(q, i, half), wide)
			build.VMULPD(g, wide, wide)
			build.VCVTPD2PSY(wide, narrow)
			build.VMOVUPS(narrow, word(dst, i, half))
		}
	})
	end()
}

// broadcast is a parameter in all lanes.
func broadcast(param string) reg.VecVirtual {
	at, err := build.Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	all := build.YMM()
	build.VBROADCASTSD(at.Addr, all)
	return all
}

func end() {
	build.VZEROUPPER()
	build.RET()
}
