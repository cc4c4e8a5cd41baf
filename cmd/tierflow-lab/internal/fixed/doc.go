// Package fixed knows the decisions of other libraries by fixed thresholds, written down as
// plans: Open MPI's tuned and HAN, and MPICH. So tierflow can simulate and measure itself
// beside them with everything else equal.
//
// A decision is a fact about a library: a number of ranks, a number of bytes, the name of
// an algorithm. The facts are from
//
//   - Open MPI 4.1.4 to 5.0.9, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c, the same
//     thresholds in all of them; the fallbacks of algorithms are from
//     ompi/mca/coll/base,
//   - HAN of Open MPI 5.0.9, ompi/mca/coll/han/coll_han_component.c, and
//     ompi/mca/coll/libnbc, its module between nodes,
//   - MPICH of August 2026 (6a79bf6575), maint/tuning/coll: mpir/generic.json,
//     ch4/generic.json and ch4/posix_generic.json.
//
// The plan has tierflow's algorithm of the same kind, by the table of package foreign. Where
// there is none it has the closest one, never a worse one, and [Decision.Closest] says so. Links, copies and
// messages are tierflow's; no plan can say the costs of the libraries' own.
//
// It is pure: equal arguments give equal plans.
package fixed
