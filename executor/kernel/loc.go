package kernel

import (
	"math"

	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// portableLoc is the kernel of MinLoc and MaxLoc on Loc[v]. Each comparison is named in a call of its own:
// the compiler inlines it then. By a table of functions a loop over int32 took 2.7 times as long (2026-11-24).
func portableLoc(op tasks.OpID, v tasks.Datatype) Func {
	switch v {
	case tasks.Int8:
		return locs(op, compare[int8])
	case tasks.Int16:
		return locs(op, compare[int16])
	case tasks.Int32:
		return locs(op, compare[int32])
	case tasks.Int64:
		return locs(op, compare[int64])
	case tasks.Uint8:
		return locs(op, compare[uint8])
	case tasks.Uint16:
		return locs(op, compare[uint16])
	case tasks.Uint32:
		return locs(op, compare[uint32])
	case tasks.Uint64:
		return locs(op, compare[uint64])
	case tasks.Float16:
		return locs(op, func(x, y half.Float16) int { return compareFloat(x.Float32(), y.Float32()) })
	case tasks.BFloat16:
		return locs(op, func(x, y half.BFloat16) int { return compareFloat(x.Float32(), y.Float32()) })
	case tasks.Float32:
		return locs(op, compareFloat[float32])
	case tasks.Float64:
		return locs(op, compareFloat[float64])
	}
	return nil
}

// Answers of compareFloat when one side is a NaN.
const (
	xIsNaN = -2
	yIsNaN = 2
)

// locs picks a or b by compare's answer: negative if x is below y.
func locs[T tasks.LocValue](op tasks.OpID, compare func(x, y T) int) Func {
	var sign int
	switch op {
	case tasks.OpMinLoc:
		sign = 1
	case tasks.OpMaxLoc:
		sign = -1
	default:
		return nil
	}
	return lift(func(dst, a, b []tasks.Loc[T]) {
		for i := range dst {
			x, y := a[i], b[i]
			c := compare(x.Value, y.Value)
			if c != xIsNaN && c != yIsNaN {
				c *= sign
			}
			if c > 0 || c == 0 && y.Index < x.Index {
				x = y
			}
			dst[i] = x
		}
	})
}

func compare[T integer](x, y T) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// compareFloat orders −0 below +0 and tells NaNs apart from the order.
func compareFloat[T float](x, y T) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x != x && y != y:
		return 0
	case x != x:
		return xIsNaN
	case y != y:
		return yIsNaN
	case x == 0:
		return zeroRank(x) - zeroRank(y)
	}
	return 0
}

func zeroRank[T float](zero T) int {
	if math.Signbit(float64(zero)) {
		return 0
	}
	return 1
}
