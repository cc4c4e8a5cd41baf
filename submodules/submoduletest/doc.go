// Package submoduletest is the conformance suite of submodules. A new one joins
// with a test of five lines:
//
//	func TestConformance(t *testing.T) {
//		submoduletest.Run(t, ring.Ring{})
//	}
//
// For all its algorithms and operations the suite compiles groups of one to nine ranks with leaders
// at both ends and between, in place or not, with many counts, segments and inner segments, on
// machines of one to four levels. It proves the programs with package check. It moves no bytes: a
// submodule that passes is right on any executor.
package submoduletest
