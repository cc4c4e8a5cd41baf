//go:build !amd64

package kernel

import "testing"

// withoutFeatures has nothing to take away.
func withoutFeatures(*testing.T) {}
