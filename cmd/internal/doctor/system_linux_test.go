package doctor

import (
	"slices"
	"testing"
)

func TestCPUList(t *testing.T) {
	for want, cpus := range map[string][]int{"": nil, "0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "1,3,5-6": {1, 3, 5, 6}, "62-63": {62, 63}} {
		if got := cpuList(func(cpu int) bool { return slices.Contains(cpus, cpu) }, 64); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
