package viz

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cause is the reason for a part of a call's time.
type Cause string

// The causes. A call's time is from when the first rank entered it until the last one left.
const (
	Late   Cause = "late"   // a rank had not entered the call, and what followed needed it
	Wire   Cause = "wire"   // a message between nodes was on its way, and both ends could go on
	Memory Cause = "memory" // a message inside a node was
	Copy   Cause = "copy"
	Reduce Cause = "reduce"
	CPU    Cause = "CPU" // a rank had other things to do, or no processor
)

// Causes lists the causes in their order in reports.
func Causes() []Cause { return []Cause{Late, Wire, Memory, Copy, Reduce, CPU} }

// Blame is so much time of a cause, in one place: r3 for a rank, a>b for a way between nodes, a for
// a node.
type Blame struct {
	Cause Cause
	Where string
	NS    int64
}

// Attribute divides a call's time along its critical path: all parts together are the call's
// length. The path leads back to one rank: the time before its entry is its lateness.
func Attribute(c *TracedCall, nodes []string) []Blame {
	path, first := tracePath(c.Events)
	var all []Blame
	add := func(cause Cause, where string, from, to int64) {
		if to > from {
			all = addBlame(all, Blame{cause, where, to - from})
		}
	}
	rank := func(of int) string { return fmt.Sprintf("r%d", c.Members[of]) }
	at, end := c.Begin(), c.End()
	if len(path) == 0 { // no steps: the last rank to come made it
		last := slices.Index(c.Begins, slices.Max(c.Begins))
		add(Late, rank(last), at, c.Begins[last])
		add(CPU, rank(slices.Index(c.Ends, end)), c.Begins[last], end)
		return all
	}
	entered := min(c.Begins[first], path[0].Begin)
	add(Late, rank(int(first)), at, entered)
	at = max(at, entered)
	for i := range path {
		p := &path[i]
		add(CPU, rank(int(first)), at, min(p.Begin, end)) // nothing, but before the first step
		at = max(at, p.Begin)
		cause, where := c.causeOf(p, nodes)
		add(cause, where, at, min(p.End, end))
		at = max(at, p.End)
	}
	add(CPU, rank(int(path[len(path)-1].Rank)), at, end)
	return all
}

// addBlame adds a time to the same cause's in the same place.
func addBlame(all []Blame, one Blame) []Blame {
	for i := range all {
		if b := &all[i]; b.Cause == one.Cause && b.Where == one.Where {
			b.NS += one.NS
			return all
		}
	}
	return append(all, one)
}

// causeOf returns the cause of a piece of the path, and its place.
func (c *TracedCall) causeOf(p *PathPiece, nodes []string) (Cause, string) {
	me := c.Members[p.Rank]
	switch p.Cause {
	case causeMessage:
		from, to, ok := endsOf(p.Label)
		if !ok || int(max(from, to)) >= len(c.Members) {
			return Memory, nodes[me]
		}
		if a, b := nodes[c.Members[from]], nodes[c.Members[to]]; a != b {
			return Wire, a + ">" + b
		}
		return Memory, nodes[me]
	case causeCopy:
		return Copy, fmt.Sprintf("r%d", me)
	case causeReduce:
		return Reduce, fmt.Sprintf("r%d", me)
	}
	return CPU, fmt.Sprintf("r%d", me)
}

// Account is the time of all traced calls with one request, by causes.
type Account struct {
	Request string
	Bytes   int64
	Calls   int
	NS      int64   // of all together
	Blames  []Blame // their sum is NS; the largest first
}

// Accounts sums up the calls of a job by request, the longest first.
func Accounts(j *JobTrace) []Account {
	var all []Account
	for _, same := range groupBy(j.Calls, func(c *TracedCall) string { return c.Request }) {
		first := &j.Calls[same[0]]
		a := Account{Request: first.Request, Bytes: first.Bytes, Calls: len(same)}
		for _, i := range same {
			c := &j.Calls[i]
			a.NS += c.End() - c.Begin()
			for _, b := range Attribute(c, j.Nodes) {
				a.Blames = addBlame(a.Blames, b)
			}
		}
		slices.SortStableFunc(a.Blames, func(a, b Blame) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Where, b.Where)) })
		all = append(all, a)
	}
	slices.SortStableFunc(all, func(a, b Account) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Request, b.Request)) })
	return all
}

// groupBy returns the indexes of equal keys together, in the order of their first ones.
func groupBy[T any, K comparable](all []T, key func(*T) K) (groups [][]int) {
	at := map[K]int{} // index in groups
	for i := range all {
		k := key(&all[i])
		g, known := at[k]
		if !known {
			g = len(groups)
			at[k], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// Of returns how much of the time is due to a cause, ns, and the place with most of it.
func (a *Account) Of(cause Cause) (all int64, most Blame) {
	for _, b := range a.Blames {
		if b.Cause == cause {
			all += b.NS
			if most.NS < b.NS {
				most = b
			}
		}
	}
	return all, most
}

// Percents returns the share of each cause, in the order of [Causes]: whole numbers that add
// to 100, unless nothing took time. The largest remainders are rounded up.
func (a *Account) Percents() []int {
	causes := Causes()
	shares, rest := make([]int, len(causes)), make([]int64, len(causes))
	if a.NS == 0 {
		return shares
	}
	left := 100
	for i, cause := range causes {
		n, _ := a.Of(cause)
		shares[i], rest[i] = int(100*n/a.NS), 100*n%a.NS
		left -= shares[i]
	}
	for ; left > 0; left-- {
		i := slices.Index(rest, slices.Max(rest))
		shares[i]++
		rest[i] = -1
	}
	return shares
}

// String is a line: allreduce 1048576 f32 sum, 212 calls, 61.2ms: wire 58% (a>b 41%), late
// 31% (r5 29%), reduce 6%, copy 5%. Shares add to 100%; of a cause's places the first is named.
func (a *Account) String() string {
	calls := "calls"
	if a.Calls == 1 {
		calls = "call"
	}
	head := fmt.Sprintf("%s, %d %s, %v:", a.Request, a.Calls, calls, time.Duration(a.NS).Round(time.Microsecond))
	type part struct {
		share int
		text  string
	}
	var parts []part
	for i, share := range a.Percents() {
		if share == 0 {
			continue
		}
		cause := Causes()[i]
		_, most := a.Of(cause)
		where := most.Where
		if n := int(100 * most.NS / a.NS); n < share && n > 0 {
			where += fmt.Sprintf(" %d%%", n)
		}
		parts = append(parts, part{share, fmt.Sprintf(" %s %d%% (%s)", cause, share, where)})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.share, a.share) })
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.text)
	}
	return head + strings.Join(texts, ",")
}
