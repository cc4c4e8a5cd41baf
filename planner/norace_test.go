//go:build !race

package planner_test

// slowdown is 1 without the race detector.
const slowdown = 1
