//go:build race

package tune_test

import "testing"

// alone skips a test of one goroutine, in which there are no races to find.
func alone(t *testing.T) {
	t.Helper()
	t.Skip("one goroutine, which the race detector would slow down eightfold for nothing")
}
