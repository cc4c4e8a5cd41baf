// Package suite judges the tests of a Go module: which of them fail now and then on a busy machine (flakes), and which
// mutations of the source no test notices (mutants, as in mutation testing). Both run go test, and only read the source.
package suite
