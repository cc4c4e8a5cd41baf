//go:build invariants

package invariants

// On is true under the build tag invariants.
const On = true
