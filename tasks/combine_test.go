package tasks

import (
	"slices"
	"strings"
	"testing"
)

// Operands keep their order, and the result may lie over one of them.
func TestCombine(t *testing.T) {
	less := UserOp("less", false, func(a, b int32) int32 { return 2*a - b })
	a, b := []int32{1, 2, 3}, []int32{10, 20, 30}
	for _, dst := range [][]int32{make([]int32, 3), a, b} {
		copy(a, []int32{1, 2, 3})
		copy(b, []int32{10, 20, 30})
		if err := Combine(less, dst, a, b); err != nil || !slices.Equal(dst, []int32{-8, -16, -24}) {
			t.Errorf("got %v, error %v", dst, err)
		}
	}
	if err := Combine(less, nil, []int32{}, nil); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}

func TestCombineRefuses(t *testing.T) {
	two := UserOp("two", true, func(a, b int32) int32 { return a + b })
	three := []int32{1, 2, 3}
	for want, err := range map[string]error{
		"2 and 3 elements into 3":                             Combine(two, three, three[:2], three),
		"operation two combines i32, the buffer holds":        Combine(two, []int64{1}, []int64{1}, []int64{1}),
		"operation two combines i32, the buffer holds string": Combine(two, []string{""}, []string{""}, []string{""}),
		"operation sum has no function of the caller":         Combine(Sum, three, three, three),
		"its function is nil":                                 Combine(UserOp[int32]("none", true, nil), three, three, three),
		"operation Op(0)":                                     Combine(Op{}, three, three, three),
		"is no identity":                                      Combine(UserOpWithIdentity("sum", true, int32(1), func(a, b int32) int32 { return a + b }), three, three, three),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
