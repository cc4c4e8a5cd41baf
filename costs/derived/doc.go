// Package derived prices collectives by models of their implementation (Nuriyev, Lastovetsky: A New
// Model-Based Approach to Performance Comparison of MPI Collective Algorithms, PaCT 2021). It
// counts the messages on the longest path of an algorithm, and takes the time of one message from
// measurements of the same algorithm.
//
// It measures nothing: package measure runs the experiments.
//
//	gamma, err := derived.NewGamma(times) // of one message to 1, 2, 3, … ranks
//	line, err := derived.Estimate(topology, registry, gamma, 0, experiments)
//	model, ok := derived.Bcast("binomial")
//	ns := line.NS(model.Coeff(ranks, bytes, segment, gamma))
//
// # A message
//
// A message of m bytes takes α + β·m (Hockney; the paper's section 3). To send the same segment to
// k others at once takes a rank γ(k+1) times as long, and γ(2) is 1 (equations 2 and 3). γ belongs
// to the machine, α and β belong to one algorithm on it. Times are ns, sizes bytes.
//
// An experiment is a bcast with a linear gather after it, so that it begins and ends on the root
// (section 4.2). Two things differ from the paper. The gather has times of its own, because it is
// another algorithm. If an experiment takes longer than its line says, sizes around it do by the
// same factor ([Deviation]): flow control has steps.
//
// # Where the coefficients come from
//
// [Walk] follows the programs that ranks run, step by step. Its rules:
//
//   - A rank sends in bursts: of its messages that are ready it takes the first to each
//     peer. A burst of k messages takes γ(k+1) times as long as one, and all of them are
//     there at its end. Then comes the next burst.
//   - A rank that hears k others at the same time has all they sent after γ(k+1) times the
//     length of one message, or later if they send longer.
//   - A message may arrive before its receive is posted.
//   - Reductions of a rank come one after the other. Copies and steps that only wait take no
//     time.
//
// [Models] are closed forms of six bcasts, as package adapt lowers them. They agree with Walk for
// any number of ranks and any length. Beside the paper's forms, a place without a full set of children is cheaper:
// programs have such trees.
//
//	algorithm     sends on the longest path, n segments, P ranks (the paper's figure 4, equation 6)
//	linear        n·γ(P); beyond 33 ranks a second row of the tree
//	chain         n + P − 2
//	kchain        n·γ(5) + ⌈(P−1)/4⌉ − 1
//	binary        (n+H−2)·γ(3) + γ(3) or 1, H = ⌊log2 P⌋
//	splitbinary   half of n down each side, γ(4) where a place also serves its partner, and 1 for the last exchange
//	binomial      n·γ(L+1) + Σ γ(L−i+1) for i = 1…L−1, L = ⌈log2 P⌉, less where the tree is not full
//
// A rank's long segments leave one after the other ([submodules.TakesTurns]): k take as long as k messages, and
// the first child has its own after one. The paper has no such forms. p is the sum of a path's places in the
// order of service, the longest way's.
//
//	linear        n·(P−1); beyond 33 ranks p + (n−1)·32
//	chain         n + P − 2
//	kchain        p + (n−1)·4
//	binary        p + (n−1)·2
//	splitbinary   γ(3) + p + 1 + (n−1)·3, near: a place hears two others at the same time
//	binomial      n·L
package derived
