package verify

import (
	"context"
	"math/rand/v2"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// keepsOrder is an operation that shows when operands change places.
var keepsOrder = tasks.UserOp("first", false, func(a, _ int32) int32 { return a })

// drawCase makes the i-th random case. It depends on nothing but the seed and i, so
// that cases may be checked in any order.
func (v *verifying) drawCase(i int) casegen.Case {
	rng := rand.New(rand.NewPCG(v.seed, uint64(i)))
	coll := v.colls[rng.IntN(len(v.colls))]
	return casegen.Options{
		MaxRanks: v.maxRanks, Coll: coll, Topology: v.on, Plan: v.forced.For(coll), Registry: v.reg,
	}.Draw(rng)
}

// listCases returns all requests and plans on the one machine.
func (v *verifying) listCases(ctx context.Context) ([]casegen.Case, error) {
	var all []casegen.Case
	for _, coll := range v.colls {
		requests, err := v.listRequests(coll)
		if err != nil {
			return nil, err
		}
		for _, r := range requests {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			plans, err := v.listPlans(r)
			if err != nil {
				return nil, err
			}
			for _, p := range plans {
				all = append(all, casegen.Case{Request: r, Topology: v.on, Plan: p})
			}
		}
	}
	return all, nil
}

// listRequests returns requests of a collective: of all sizes, and of several roots
// and ways to reduce unless they are given.
func (v *verifying) listRequests(coll tasks.Collective) ([]tasks.Request, error) {
	if coll == tasks.Barrier {
		return []tasks.Request{{Coll: coll}}, nil
	}
	sizes, err := kit.ParseSizes(v.Bytes)
	if err != nil {
		return nil, kit.Usagef("--bytes: %w", err)
	}
	if v.Counts != "" {
		sizes = sizes[:1] // which doesn't matter
	}
	var all []tasks.Request
	for _, n := range sizes {
		v.Op = tasks.Sum.String()
		r, err := v.ReadRequest(coll, n, v.on)
		if err != nil {
			return nil, err
		}
		roots := []levels.Rank{r.Root}
		if last := levels.Rank(v.on.Size() - 1); r.Rooted() && !v.IsGiven("root") && last > 0 {
			roots = append(roots, last)
		}
		for _, r.Root = range roots {
			for _, variant := range v.listVariants(r) {
				switch {
				case !variant.InPlace || isEven(variant.Matrix):
					all = append(all, variant)
				case v.IsGiven("in-place"):
					return nil, kit.Usagef("--in-place: with --counts %s a rank gives another one more elements than it gets from it", v.Counts)
				}
			}
		}
	}
	return all, nil
}

// isEven reports whether each rank gives each other one as much as it gets from it, so that buffers
// may be in place.
func isEven(m tasks.Matrix) bool {
	for rank := range m.Len() {
		if !m.IsEven(rank) {
			return false
		}
	}
	return true
}

// listVariants returns r with buffers apart and in place, and with the ways to reduce.
func (v *verifying) listVariants(r tasks.Request) (all []tasks.Request) {
	if !r.Reduces() && !r.Blocks() {
		return []tasks.Request{r}
	}
	for _, inPlace := range v.givenOrBoth("in-place", v.inPlace) {
		r.InPlace = inPlace
		if !r.Reduces() {
			all = append(all, r)
			continue
		}
		for _, ordered := range v.givenOrBoth("non-commutative", v.ordered) {
			if r.Op = tasks.Sum; ordered {
				r.Op = keepsOrder
			}
			all = append(all, r)
		}
	}
	return all
}

// givenOrBoth returns the value of a flag if it was given, else both values.
func (v *verifying) givenOrBoth(flag string, value bool) []bool {
	if v.IsGiven(flag) {
		return []bool{value}
	}
	return []bool{false, true}
}
