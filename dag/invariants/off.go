//go:build !invariants

// Package invariants has one constant: whether costly checks of our own promises are
// compiled in. With the build tag invariants they are; else the compiler drops them.
//
//	if invariants.On && left < 0 {
//		panic("executor: a step ended twice")
//	}
package invariants

// On is true under the build tag invariants.
const On = false
