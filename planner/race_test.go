//go:build race

package planner_test

// slowdown is about how much longer everything takes with the race detector.
const slowdown = 6
