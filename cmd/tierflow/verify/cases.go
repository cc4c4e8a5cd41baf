package verify

import (
	"context"
	"math/rand/v2"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
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
	given := v.IsGiven
	var all []tasks.Request
	for _, n := range sizes {
		v.Op = tasks.Sum.String()
		r, err := v.ReadRequest(coll, n, v.on)
		if err != nil {
			return nil, err
		}
		all = append(all, v.listVariants(r)...)
		if last := levels.Rank(v.on.Size() - 1); r.Rooted() && !given("root") && last > 0 {
			r.Root = last
			all = append(all, v.listVariants(r)...)
		}
	}
	return all, nil
}

// listVariants returns r with buffers apart and in place, and with the ways to reduce.
func (v *verifying) listVariants(r tasks.Request) (all []tasks.Request) {
	if !r.Reduces() && !r.Blocks() {
		return []tasks.Request{r}
	}
	given := v.IsGiven
	for _, inPlace := range givenOrBoth(given("in-place"), v.inPlace) {
		r.InPlace = inPlace
		if !r.Reduces() {
			all = append(all, r)
			continue
		}
		for _, ordered := range givenOrBoth(given("non-commutative"), v.ordered) {
			if r.Op = tasks.Sum; ordered {
				r.Op = keepsOrder
			}
			all = append(all, r)
		}
	}
	return all
}

// givenOrBoth returns value if it was given, else both values.
func givenOrBoth(given, value bool) []bool {
	if given {
		return []bool{value}
	}
	return []bool{false, true}
}
