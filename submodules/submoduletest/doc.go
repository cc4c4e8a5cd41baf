// Package submoduletest is the conformance suite of submodules. A new one joins
// with a test of three lines, as that of package nbc:
//
//	func TestConformance(t *testing.T) {
//		submoduletest.Run(t, nbc.NBC{})
//	}
//
// For all its algorithms and operations the suite compiles groups of one to nine ranks with
// leaders at both ends and between, in place or not, with many counts, segments and inner
// segments, on machines of one to four levels. It proves the programs with package check. It
// moves no bytes: a passing submodule is right on any executor.
package submoduletest
