// Package submoduletest is the conformance suite of submodules. A new one joins
// with a test of five lines:
//
//	func TestConformance(t *testing.T) {
//		submoduletest.Run(t, ring.Ring{})
//	}
//
// For all its algorithms and operations the suite compiles groups of one to nine
// ranks with leaders at both ends and between, counts, segments and inner segments, in place or not,
// and machines of one to four levels, and proves the programs with package
// check. It moves no bytes: what it accepts is right on any executor.
package submoduletest
