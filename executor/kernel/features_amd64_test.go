package kernel

import "testing"

// withoutFeatures makes this CPU one without AVX2 for a test.
func withoutFeatures(t *testing.T) {
	avx2 := hasAVX2
	hasAVX2 = false
	t.Cleanup(func() { hasAVX2 = avx2 })
}
