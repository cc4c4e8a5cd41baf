//go:build !race

package submoduletest

// maxGroup is the largest group: past a power of two, with an odd one over.
const maxGroup = 9
