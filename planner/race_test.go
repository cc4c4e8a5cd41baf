//go:build race

package planner_test

import "testing"

// slowdown is about how much longer everything takes with the race detector.
const slowdown = 6

// alone skips a test of one goroutine, in which there are no races to find.
func alone(t *testing.T) {
	t.Helper()
	t.Skip("one goroutine, which the race detector would slow down eightfold for nothing")
}
