package tune

import "slices"

// unevenBlocks lists each configuration of requests with blocks that differ.
func (k *knowledge) unevenBlocks() (all []work) {
	for i, r := range k.requests {
		if r.Differ() {
			all = append(all, k.everyPlan(i)...)
		}
	}
	return slices.DeleteFunc(all, func(w work) bool { return k.tried[w.keyOf()] })
}
