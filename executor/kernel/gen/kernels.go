package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vec is a register of 32 bytes; op combines two.
type (
	vec = reg.VecVirtual
	op  func(a, b vec) vec
	// instruction is r = a ∘ b, the operands written r last. The instructions
	// with AVX-512 forms are variadic.
	instruction interface {
		func(b, a, r operand.Op) | func(ops ...operand.Op)
	}
)

func kernels() []kernel {
	all := []kernel{
		whole("and", simple(build.VPAND)), whole("or", simple(build.VPOR)), whole("xor", simple(build.VPXOR)),
		whole("sumI8", simple(build.VPADDB)), whole("sumI16", simple(build.VPADDW)),
		whole("sumI32", simple(build.VPADDD)), whole("sumI64", simple(build.VPADDQ)),
		whole("prodI16", simple(build.VPMULLW)), whole("prodI32", simple(build.VPMULLD)),
		whole("minI8", simple(build.VPMINSB)), whole("maxI8", simple(build.VPMAXSB)),
		whole("minI16", simple(build.VPMINSW)), whole("maxI16", simple(build.VPMAXSW)),
		whole("minI32", simple(build.VPMINSD)), whole("maxI32", simple(build.VPMAXSD)),
		whole("minU8", simple(build.VPMINUB)), whole("maxU8", simple(build.VPMAXUB)),
		whole("minU16", simple(build.VPMINUW)), whole("maxU16", simple(build.VPMAXUW)),
		whole("minU32", simple(build.VPMINUD)), whole("maxU32", simple(build.VPMAXUD)),
		whole("sumF64", simple(build.VADDPD)), whole("prodF64", simple(build.VMULPD)),
		whole("divideF64", simple(build.VDIVPD)),
		whole("minF64", lowest(build.VMINPD, build.VORPD)),
		whole("maxF64", highest(build.VMAXPD, build.VORPD, build.VXORPD, build.VSUBPD)),
	}
	all = append(all, wideIntegers()...)
	all = append(all, kernel{name: "past", fence: true, combine: func(dst, a, _ operand.Mem) {
		x := build.YMM()
		build.VMOVDQU(a, x)
		build.VMOVNTDQ(x, dst)
	}})
	float32s := []struct {
		name  string
		op    op
		exact bool // the result is one of the operands
	}{
		{"sum", simple(build.VADDPS), false},
		{"prod", simple(build.VMULPS), false},
		{"divide", simple(build.VDIVPS), false},
		{"min", lowest(build.VMINPS, build.VORPS), true},
		{"max", highest(build.VMAXPS, build.VORPS, build.VXORPS, build.VSUBPS), true},
	}
	for _, f := range float32s {
		all = append(all, whole(f.name+"F32", f.op), float16(f.name+"F16", f.op), bfloat16(f.name+"BF16", f.op, f.exact))
	}
	return all
}

// whole is a kernel whose elements are combined as they lie in the register.
func whole(name string, f op) kernel {
	return kernel{name: name, combine: func(dst, a, b operand.Mem) {
		x, y := build.YMM(), build.YMM()
		build.VMOVDQU(a, x)
		build.VMOVDQU(b, y)
		build.VMOVDQU(f(x, y), dst)
	}}
}

func simple[I instruction](i I) op {
	return func(a, b vec) vec {
		r := build.YMM()
		switch i := any(i).(type) {
		case func(b, a, r operand.Op):
			i(b, a, r)
		case func(ops ...operand.Op):
			i(b, a, r)
		}
		return r
	}
}

// lowest is a minimum with NaN and −0. The instruction gives its second operand
// if one is a NaN or both are zeros. So in both orders the results are equal, or
// they are the two operands: then OR keeps a NaN (exponent all ones, fraction not
// zero) and the sign of −0.
func lowest(least, or func(...operand.Op)) op {
	return func(a, b vec) vec {
		return simple(or)(simple(least)(a, b), simple(least)(b, a))
	}
}

// highest is a maximum with NaN and −0. As in lowest, both orders give equal
// results, or the two operands. OR minus XOR leaves equal results as they are,
// keeps a NaN, and makes −0 − −0 = +0 of zeros with different signs.
func highest(greatest, or, xor, subtract func(...operand.Op)) op {
	return func(a, b vec) vec {
		x, y := simple(greatest)(a, b), simple(greatest)(b, a)
		return simple(subtract)(simple(or)(x, y), simple(xor)(x, y))
	}
}

// wideIntegers are the minima and maxima of 64 bits: AVX2 only compares, and only
// signed numbers; flipping the top bit makes these of unsigned ones.
func wideIntegers() []kernel {
	var top vec
	constants := func() {
		top = ones()
		build.VPSLLQ(operand.U8(63), top, top)
	}
	flip := func(x vec) vec { return simple(build.VPXOR)(x, top) }
	same := func(x vec) vec { return x }
	choose := func(key func(vec) vec, smaller bool) op {
		return func(a, b vec) vec {
			greater := simple(build.VPCMPGTQ)(key(a), key(b))
			if !smaller {
				a, b = b, a
			}
			build.VBLENDVPD(greater, b, a, a)
			return a
		}
	}
	least, greatest := whole("minU64", choose(flip, true)), whole("maxU64", choose(flip, false))
	least.constants, greatest.constants = constants, constants
	return []kernel{whole("minI64", choose(same, true)), whole("maxI64", choose(same, false)), least, greatest}
}

// float16 combines in float32, eight elements at a time.
func float16(name string, f op) kernel {
	const nearestEven = 0
	return kernel{name: name, combine: func(dst, a, b operand.Mem) {
		for _, half := range []int{0, block / 2} {
			x, y, packed := build.YMM(), build.YMM(), build.XMM()
			build.VCVTPH2PS(a.Offset(half), x)
			build.VCVTPH2PS(b.Offset(half), y)
			build.VCVTPS2PH(operand.U8(nearestEven), f(x, y), packed)
			build.VMOVDQU(packed, dst.Offset(half))
		}
	}}
}

// bfloat16 combines in float32, the even elements and the odd ones apart. Rounding adds
// just under half of the last place, one more if that place is odd. A NaN needs no
// care: made from bfloat16 operands its lower half is zero, so the sum carries
// nothing into the upper. Exact results (of min and max) are not rounded.
func bfloat16(name string, f op, exact bool) kernel {
	var upper, almostHalf, one vec
	constants := func() {
		upper = shifted(build.VPSLLD, 16)
		if !exact {
			almostHalf, one = shifted(build.VPSRLD, 17), shifted(build.VPSRLD, 31)
		}
	}
	round := func(x vec) vec {
		if exact {
			return x
		}
		odd := build.YMM()
		build.VPSRLD(operand.U8(16), x, odd)
		odd = simple(build.VPAND)(odd, one)
		return simple(build.VPADDD)(simple(build.VPADDD)(x, almostHalf), odd)
	}
	return kernel{name: name, constants: constants, combine: func(dst, a, b operand.Mem) {
		x, y := build.YMM(), build.YMM()
		build.VMOVDQU(a, x)
		build.VMOVDQU(b, y)
		odd := round(f(simple(build.VPAND)(x, upper), simple(build.VPAND)(y, upper)))
		build.VPSLLD(operand.U8(16), x, x)
		build.VPSLLD(operand.U8(16), y, y)
		even := round(f(x, y))
		build.VPSRLD(operand.U8(16), even, even)
		const odds = 0xaa
		build.VPBLENDW(operand.U8(odds), odd, even, even)
		build.VMOVDQU(even, dst)
	}}
}

func ones() vec {
	x := build.YMM()
	build.VPCMPEQD(x, x, x)
	return x
}

// shifted is ones moved by bits in each 32-bit lane.
func shifted(shift func(...operand.Op), bits uint8) vec {
	x := ones()
	shift(operand.U8(bits), x, x)
	return x
}
