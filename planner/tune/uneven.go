package tune

import "slices"

// unevenBlocks lists each configuration of the requests whose blocks differ.
func (k *knowledge) unevenBlocks() (all []work) {
	for i, r := range k.requests {
		if r.Differ() {
			all = append(all, k.everyPlan(i)...)
		}
	}
	return slices.DeleteFunc(all, func(w work) bool { return k.tried[w.keyOf()] })
}
