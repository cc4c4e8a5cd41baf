package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
)

// Options say how states are looked at. The zero value is ready to use.
type Options struct {
	// Least is how long a call must have stood still to count. 0: a second.
	Least time.Duration
	// Nodes are the names of the ranks' nodes, by rank. nil: they are unknown.
	Nodes []string
}

// job is a job under examination.
type job struct {
	Options
	all   []flight.State // ascending by rank, each rank once
	by    map[int]*flight.State
	spots []spot
	at    map[*flight.Open]int // place of a call among the spots
	found []Finding
	// mayBeSlow: nobody waits for the ranks without an answer, and others wait for a stopped rank. On a busy machine an
	// answer may take longer than its time.
	mayBeSlow bool
}

// Diagnose returns the faults of a job, the cause of the rest first; none while it moves. States are those
// of its ranks, in any order, at nearly the same time. A rank may be told of twice, by itself and
// by a neighbor: then its own word counts.
func Diagnose(states []flight.State, o Options) []Finding {
	if o.Least <= 0 {
		o.Least = time.Second
	}
	j := newJob(states, o)
	j.findSpots()
	j.findFailures()
	j.findAbsent()
	j.findMismatch()
	j.findWaits()
	slices.SortStableFunc(j.found, func(a, b Finding) int { return cmp.Compare(j.order(&a), j.order(&b)) })
	return j.found
}

// order returns the place of a finding among all: by class, but ranks that may only be slow to answer come after stopped ones.
func (j *job) order(f *Finding) int {
	if f.Class == Unreachable && j.mayBeSlow {
		return 2*int(Stopped) + 1
	}
	return 2 * int(f.Class)
}

// Unclosed returns why ranks that close their communicator have waited for some time: others are
// stopped or dead, in a deadlock, or late: they have not come to Close, and wait for none of the others that have not.
// States are as for [Diagnose].
// Silent ranks are blamed if nobody else is: the way to them may lead through others.
// nil: all ranks are closing.
func Unclosed(states []flight.State, o Options, long time.Duration) *Finding {
	for _, f := range Diagnose(states, o) {
		if f.Class == Died || f.Class == Stopped || f.Class == Deadlock {
			return &f
		}
	}
	j := newJob(states, o)
	j.findSpots()
	var away, silent []int
	may := map[int]bool{}
	for i := range j.all {
		switch s := &j.all[i]; s.Doing {
		case flight.Left:
		case flight.Silent:
			silent = append(silent, s.Rank)
		default:
			away, may[s.Rank] = append(away, s.Rank), true
		}
	}
	if len(away) == 0 {
		away = silent
	}
	if len(away) == 0 {
		return nil
	}
	f := &Finding{Class: Late, Ranks: j.causes(away, may), For: long}
	var texts []string
	for _, r := range f.Ranks {
		if len(texts) < maxNamed {
			text := fmt.Sprintf("rank %d has not come to Close for %s", r, seconds(long))
			if s := j.by[r]; s.Doing != flight.Silent { // a rank that closes may not ask any more
				text += whereabouts(s)
			}
			texts = append(texts, text)
		}
	}
	f.Text = strings.Join(texts, "; ")
	return f
}

// newJob returns a job with the best state known of each rank.
func newJob(states []flight.State, o Options) *job {
	j := &job{Options: o, by: map[int]*flight.State{}}
	best := map[int]flight.State{}
	add := func(s flight.State) {
		if old, has := best[s.Rank]; !has || old.Doing == flight.Silent && s.Doing != flight.Silent {
			best[s.Rank] = s
		}
	}
	for i := range states {
		add(states[i])
		for _, near := range states[i].Near {
			add(near)
		}
	}
	for _, rank := range slices.Sorted(maps.Keys(best)) {
		j.all = append(j.all, best[rank])
	}
	for i := range j.all {
		j.by[j.all[i].Rank] = &j.all[i]
	}
	return j
}

// add adds a finding.
func (j *job) add(c Class, ranks []int, long time.Duration, format string, args ...any) {
	j.found = append(j.found, Finding{Class: c, Ranks: slices.Sorted(slices.Values(ranks)), For: long, Text: fmt.Sprintf(format, args...)})
}

// findFailures takes the failures met by ranks: a class and a first rank, once. What a failure has led
// to comes after it: whoever ends a failed job kills ranks that others then lose.
func (j *job) findFailures() {
	type key struct {
		class Class
		rank  int
	}
	told := map[key]bool{}
	beyond := j.beyondCut()
	var met []*flight.Failed
	for i := range j.all {
		if f := j.all[i].Failed; f != nil && !beyond[i] {
			met = append(met, f)
		}
	}
	slices.SortStableFunc(met, func(a, b *flight.Failed) int {
		return cmp.Or(cmp.Compare(j.countFailed(a.Rank), j.countFailed(b.Rank)), cmp.Compare(b.Ago, a.Ago))
	})
	for _, f := range met {
		var class Class
		if class.UnmarshalText([]byte(f.Kind)) != nil || told[key{class, f.Rank}] || class == Died && j.endedOf(f.Rank) {
			continue
		}
		told[key{class, f.Rank}] = true
		ranks := f.Ranks
		if len(ranks) == 0 {
			ranks = []int{f.Rank}
		}
		j.add(class, ranks, 0, "%s", f.Text)
		if class == Unreachable {
			j.doubtCut(f.Rank, &j.found[len(j.found)-1])
		}
	}
}

// countFailed is 1 for a rank that has met another one's failure itself, else 0.
func (j *job) countFailed(rank int) int {
	if s := j.by[rank]; s != nil && s.Failed != nil && s.Failed.Rank != rank {
		return 1
	}
	return 0
}

// endedOf reports whether a rank has met a failure of another one that wasn't its death: if it has died since, it did so
// because of that.
func (j *job) endedOf(rank int) bool {
	s := j.by[rank]
	return s != nil && s.Failed != nil && s.Failed.Rank != rank && s.Failed.Kind != "" && s.Failed.Kind != Died.String()
}

// doubtCut adds the node of the ranks that can't reach another one, if nobody else says so and there are other
// nodes: it may be cut off itself.
func (j *job) doubtCut(rank int, f *Finding) {
	by := ""
	for i := range j.all {
		s := &j.all[i]
		if max(s.Rank, rank) >= len(j.Nodes) {
			return
		}
		node := j.Nodes[s.Rank]
		switch {
		case s.Failed == nil || s.Failed.Rank != rank || s.Failed.Kind != Unreachable.String():
		case by != "" && by != node:
			return
		default:
			by = node
		}
	}
	third := slices.ContainsFunc(j.Nodes, func(node string) bool { return node != by && node != j.Nodes[rank] })
	if by == "" || by == j.Nodes[rank] || !third {
		return
	}
	f.Nodes = []string{by, j.Nodes[rank]}
	f.Text += fmt.Sprintf("; nobody but %s says so: it may be cut off itself", by)
}

// beyondCut returns the places in j.all of ranks out of reach for most of the failed ones, and of their
// nodes. They see the others die.
func (j *job) beyondCut() map[int]bool {
	failed, by := 0, map[int]int{} // rank: how many can't reach it
	for i := range j.all {
		if f := j.all[i].Failed; f != nil {
			failed++
			if f.Kind == Unreachable.String() {
				by[f.Rank]++
			}
		}
	}
	beyond := map[int]bool{}
	for rank, count := range by {
		for i := range j.all {
			if r := j.all[i].Rank; 2*count > failed && (r == rank || max(r, rank) < len(j.Nodes) && j.Nodes[r] == j.Nodes[rank]) {
				beyond[i] = true
			}
		}
	}
	return beyond
}

// findAbsent finds ranks that can't tell their call.
func (j *job) findAbsent() {
	var silent []int
	for i := range j.all {
		s := &j.all[i]
		switch s.Doing {
		case flight.Gone:
			if !j.blames(Died, s.Rank) && !j.endedOf(s.Rank) {
				j.add(Died, []int{s.Rank}, 0, "%s has ended; its last word: %v", j.name(s), s)
			}
		case flight.Stopped:
			j.add(Stopped, []int{s.Rank}, j.waitedFor(s.Rank), "%s is stopped, by SIGSTOP or a debugger; its last word: %v", j.name(s), s)
		case flight.Silent:
			silent = append(silent, s.Rank)
		}
	}
	if len(silent) == 0 {
		return
	}
	if nodes := j.whole(silent); len(nodes) > 0 {
		j.add(Unreachable, silent, 0, "%s cut off: %s %s", strings.Join(nodes, ", "), rankText(silent), verb(silent, "does not answer", "don't answer"))
		j.found[len(j.found)-1].Nodes = nodes
		return
	}
	j.add(Unreachable, silent, 0, "%s %s", rankText(silent), verb(silent, "does not answer", "don't answer"))
	j.mayBeSlow = slices.ContainsFunc(j.found, func(f Finding) bool { return f.Class == Stopped && f.For > 0 }) &&
		!slices.ContainsFunc(silent, func(r int) bool { return j.waitedFor(r) > 0 })
}

// blames reports whether a finding of a class has a rank already.
func (j *job) blames(c Class, rank int) bool {
	return slices.ContainsFunc(j.found, func(f Finding) bool { return f.Class == c && slices.Contains(f.Ranks, rank) })
}

// whole returns the nodes of ranks if these are all ranks of some nodes, and not of all.
func (j *job) whole(ranks []int) []string {
	nodes := map[string]bool{}
	for _, r := range ranks {
		if r >= len(j.Nodes) {
			return nil
		}
		nodes[j.Nodes[r]] = true
	}
	others := false
	for r, node := range j.Nodes {
		has := slices.Contains(ranks, r)
		if nodes[node] && !has {
			return nil
		}
		others = others || !has
	}
	if !others {
		return nil
	}
	return slices.Sorted(maps.Keys(nodes))
}

// name is rank 5 (node2, process 4711).
func (j *job) name(s *flight.State) string {
	var more []string
	if s.Rank < len(j.Nodes) {
		more = append(more, j.Nodes[s.Rank])
	}
	if s.PID > 0 {
		more = append(more, fmt.Sprintf("process %d", s.PID))
	}
	if len(more) == 0 {
		return fmt.Sprintf("rank %d", s.Rank)
	}
	return fmt.Sprintf("rank %d (%s)", s.Rank, strings.Join(more, ", "))
}

// place names a call on one communicator.
type place struct {
	comm uint64
	seq  uint32
}

// findMismatch finds different calls under one number: the minority is to blame, or nobody more than the others.
func (j *job) findMismatch() {
	calls := map[place]map[string][]int{}
	var order []place
	for i := range j.all {
		for _, o := range j.all[i].Open {
			if o.Transfer {
				continue
			}
			at := place{o.Comm, o.Seq}
			if calls[at] == nil {
				calls[at] = map[string][]int{}
				order = append(order, at)
			}
			calls[at][o.What] = append(calls[at][o.What], j.all[i].Rank)
		}
	}
	for _, at := range order {
		if len(calls[at]) < 2 {
			continue
		}
		texts := slices.SortedFunc(maps.Keys(calls[at]), func(a, b string) int {
			return cmp.Or(len(calls[at][b])-len(calls[at][a]), cmp.Compare(a, b))
		})
		var ranks []int
		var parts []string
		for n, text := range texts {
			who := calls[at][text]
			if n > 0 || len(who) == len(calls[at][texts[1]]) { // without a majority all are named
				ranks = append(ranks, who...)
			}
			parts = append(parts, fmt.Sprintf("%s %s %s", rankText(who), verb(who, "runs", "run"), text))
		}
		slices.Reverse(parts)
		j.add(Mismatch, ranks, 0, "as call #%d %s", at.seq, strings.Join(parts, ", "))
	}
}

// verb returns the form that belongs to so many ranks.
func verb(ranks []int, one, many string) string {
	if len(ranks) == 1 {
		return one
	}
	return many
}

// maxNamed bounds the ranks named in a text.
const maxNamed = 8

// rankText is rank 3, or ranks 1, 2 and 5.
func rankText(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	var b strings.Builder
	b.WriteString("ranks ")
	for i, r := range ranks {
		switch {
		case i == maxNamed:
			fmt.Fprintf(&b, " and %d more", len(ranks)-i)
			return b.String()
		case i > 0 && i == len(ranks)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, r)
	}
	return b.String()
}

// seconds is 12 s, or 2.3 s below ten.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
