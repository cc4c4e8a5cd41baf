//go:build !race

package planner_test

import "testing"

// slowdown is 1 without the race detector.
const slowdown = 1

// alone marks a test of one goroutine, in which there are no races to find.
func alone(*testing.T) {}
