//go:build race

package submoduletest

// maxGroup is small with the race detector: it slows the suite down and has nothing to find in
// code of one goroutine.
const maxGroup = 4
