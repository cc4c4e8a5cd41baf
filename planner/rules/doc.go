// Package rules is a language for decisions: they give a collective its plan, by the layout, the
// size and the machine. A file of rules is text for people to write, read and change.
//
//	# comments run to the end of the line
//	$small = 32KiB                       # a named value: a running program may change it
//	let full = pernode >= 4 and balanced # a named condition
//	bcast: if bytes <= 4KiB then shape=flat,ib=adapt/binomial else default
//	allreduce, reduce:
//		if full and total > $small then shape=han,fs={near(bytes/4, 128KiB, 1MiB)}
//		elif pow2(nodes) and rate >= 10gbit then shape=ar because "fast links"
//		else default
//	alltoallv: eager=$small,ia=adapt/pairwise
//
// A rule is for one or several collectives, or for all. A name with a v is for requests with
// blocks that differ. Of the rules for a collective the first one with a decision counts. One without
// else leaves the rest to the next one; default leaves it to the choice without rules. So does the end
// of the file.
//
// Conditions compare numbers by = != < <= > >= and combine by and, or, not and parentheses.
// Numbers are made of [Parameters], values, named values, + - * / and the functions min, max,
// near(x, least, most), packed, log2 and pow2. Byte counts have units as 64KiB, rates as
// 10gbit, times as 50us. A comparison with an unknown number, such as the rate of unknown
// links, does not hold.
//
// Plans are those of [tasks.ParsePlan]. In place of a number a plan may have a named value, $small, or a
// formula in braces. The result is brought into the range of plans. An incomplete plan is completed
// as always.
//
// A rule may decide a part of plans only: shape before the collectives chooses shape=, segments
// fs= and w=, and task the algorithm of an operation by=. Those for segments may ask for
// the shape, those for tasks for inside too. The built-in rules are such a file.
//
//	shape allreduce: if free and nodes = 2 and fits(ar) then shape=ar because "{nodes} nodes"
//	segments all: if total <= 16KiB then fs=all,w=4
//	task reduce, bcast: if inside and shape != flat then by=sm else by=adapt/chain
//
// [Parse] compiles a file to a [Base]. [Base.Decide] asks it without allocation or lock.
// The package is pure and knows no submodules. Whether an algorithm exists its callers check.
//
// The source is Fagg and others, Flexible collective communication tuning architecture applied
// to Open MPI (2006), sections 5.4 and 6.
package rules
