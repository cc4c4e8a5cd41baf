//go:build !race

package tune_test

import "testing"

// alone marks a test of one goroutine, in which there are no races to find.
func alone(*testing.T) {}
