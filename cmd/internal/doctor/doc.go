// Package doctor is the command doctor. Under a launcher its processes enter their job as any
// program would, tell each other about their hosts, try every pair of ranks, and rank 0 says
// first whether all is well.
//
// An examination has four parts, one file each:
//
//	facts.go   what a rank knows of itself: who started it, limits, CPUs, addresses
//	reach.go   each rank dials every other one
//	visit.go   rank 0 lets pairs measure their lines, as many at once as there are CPUs
//	judge.go   findings from all that; report.go prints them
package doctor
