//go:build !invariants

// Package invariants says whether dear checks of our own promises are compiled
// in: with the build tag invariants they are, else the compiler drops them.
//
//	if invariants.On && left < 0 {
//		panic("executor: a step ended twice")
//	}
package invariants

// On is true under the build tag invariants.
const On = false
