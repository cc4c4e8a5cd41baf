package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/ranges"
)

// Bounds of good values.
const (
	mostAhead = 100 * time.Millisecond // between clocks
	farOff    = 4                      // times worse than the median pair of its level
	leastPeer = 4                      // fewest pairs of a level for a useful median
	payload   = 0.9                    // of a link's rate: the rest is headers
	spareFile = 64                     // descriptors for the program itself
	mostNamed = 8                      // ranks or pairs in one finding
	soon      = 7 * 24 * time.Hour     // a certificate expiring by then is worth a word
)

// judge finds faults. err ended the examination, if not nil.
func (r *report) judge(e *examination, s slowest, err error) {
	r.judgePackets(e) // other failures may follow from it
	if err != nil {
		r.problem("%s", e.describe(err))
	}
	for _, f := range e.all {
		if f.Error != "" {
			r.problem("rank %d (%s): %s", f.Rank, f.Host, f.Error)
		}
		for _, to := range f.Unreached {
			r.problem("rank %d (%s) has no connection to rank %d (%s) %s", f.Rank, f.Host, to.Rank, e.hostOf(to.Rank), to.Why)
		}
	}
	for _, text := range e.errors {
		r.problem("the measurement ended: %s", text)
	}
	r.judgeLimits(e)
	r.judgeEqual(e)
	r.judgeCPUs(e)
	r.judgeNodes(e)
	r.judgeSeals(e)
	r.judgePairs(e, s)
	untried := 0
	for _, f := range e.all {
		untried += f.Untried
	}
	if untried > 0 {
		r.warning("%d connections were not tried, or failed like others of the same rank", untried)
	}
	if e.unmeasured > 0 && len(e.errors) == 0 && err == nil && e.world != nil {
		r.warning("%d of %d pairs were not measured: --time is %v", e.unmeasured, e.unmeasured+len(e.visits), e.limit)
	}
}

// describe adds its host to a rank named by an error.
func (e *examination) describe(err error) string {
	if p, ok := errors.AsType[*join.PeerError](err); ok && e.job != nil {
		return fmt.Sprintf("rank %d (%s) %v", p.Rank, e.hostOf(int(p.Rank)), p.Err)
	}
	return err.Error()
}

// hostOf names a rank's host, as far as it is known.
func (e *examination) hostOf(rank int) string {
	if e.job != nil && rank < len(e.job.Peers) && e.job.Peers[rank] != nil {
		return e.job.Peers[rank].Host.Name
	}
	return "host unknown"
}

func (r *report) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

func (r *report) warning(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// judgePackets names the hosts that only small packets come to, with one pair of ranks for all.
func (r *report) judgePackets(e *examination) {
	type way struct{ from, to string }
	ways, examples := map[way]int{}, map[way]string{}
	var order []way
	for _, f := range e.all {
		for _, n := range f.Narrow {
			w := way{f.Host, e.hostOf(n.Rank)}
			if ways[w]++; ways[w] == 1 {
				order = append(order, w)
				examples[w] = fmt.Sprintf("those of %d bytes, such as r%d>r%d", n.Size, f.Rank, n.Rank)
			}
		}
	}
	for _, w := range order {
		r.problem("small packets from %s come to %s, %s, don't (%d pair%s of ranks): %s", w.from, w.to, examples[w], ways[w], kit.Plural(ways[w]), join.PacketAdvice)
	}
}

// judgeLimits looks at limits in the way of a job of this size.
func (r *report) judgeLimits(e *examination) {
	if len(e.all) < 2 {
		return
	}
	perNode := map[string]int{}
	for _, f := range e.all {
		perNode[f.Node]++
	}
	for _, f := range e.all {
		near := perNode[f.Node]
		need := int64(3*near + len(e.all) - near + spareFile)
		if f.Rank == 0 {
			need += int64(len(e.all))
		}
		if f.FilesHard != unlimited && f.FilesHard < need {
			r.problem("rank %d (%s): the hard limit of open files is %d; with a connection to each of %d ranks it needs about %d (ulimit -n)",
				f.Rank, f.Host, f.FilesHard, len(e.all), need)
		}
	}
}

// judgeEqual compares values that should be equal on all ranks.
func (r *report) judgeEqual(e *examination) {
	for _, what := range []struct {
		name string
		of   func(f *facts) string
	}{
		{"launchers", func(f *facts) string { return f.Launcher }},
		{"versions of tierflow", func(f *facts) string { return f.Version }},
		{"versions of Go", func(f *facts) string { return f.Compiler }},
		{"users", func(f *facts) string { return fmt.Sprint("user ", f.User) }},
		{"congestion controls", func(f *facts) string { return cmp.Or(f.Congestion, "unknown") }},
		{"systems", func(f *facts) string { system, _, _ := strings.Cut(f.System, " "); return system }},
		{"processors", func(f *facts) string { return cmp.Or(f.Processor, "unknown") }},
	} {
		if groups := groupBy(e.all, what.of); len(groups) > 1 {
			r.warning("different %s: %s", what.name, strings.Join(kit.Names(groups), "; "))
		}
	}
	if f := e.all[0]; f.Congestion == "bbr" && r.Nodes > 1 {
		r.warning("the congestion control is bbr, which paces by a model of long paths: rings and chains of nodes are faster with another (TIERFLOW_CONGESTION=reno)")
	}
}

// group is the ranks with a value.
type group struct {
	value string
	ranks []int
}

// groupBy groups ranks by a value.
func groupBy(all []*facts, of func(f *facts) string) (groups []group) {
	for _, f := range all {
		v := of(f)
		i := slices.IndexFunc(groups, func(g group) bool { return g.value == v })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{value: v})
		}
		groups[i].ranks = append(groups[i].ranks, f.Rank)
	}
	return groups
}

// String says it: reno on ranks 0-3.
func (g group) String() string { return g.value + " on " + rankList(g.ranks) }

// rankList names ranks: rank 3, ranks 0-2,5.
func rankList(ranks []int) string {
	runs := ranges.Items(ranks)
	if len(runs) > mostNamed {
		runs = append(runs[:mostNamed], "…")
	}
	return "rank" + kit.Plural(len(ranks)) + " " + strings.Join(runs, ",")
}

// judgeCPUs looks for ranks on shared CPUs, and for those letting Go use one only.
func (r *report) judgeCPUs(e *examination) {
	for _, g := range groupBy(e.all, func(f *facts) string { return fmt.Sprint("GOMAXPROCS=", f.Threads) }) {
		if r.factsOf(g.ranks[0]).Threads == 1 && len(e.all) > 1 {
			r.warning("%v: a collective that is on its way while the program computes goes on when Go interrupts that, some 10 ms late; give it 2 or more", g)
		}
	}
	for _, g := range groupBy(e.all, func(f *facts) string { return f.Node + " " + f.CPUs }) {
		n, f := len(g.ranks), r.factsOf(g.ranks[0])
		switch {
		case f.CPUCount > 0 && n > f.CPUCount:
			r.warning("%s of node %s share %d CPU%s (%s): they wait for each other, and times are not judged", rankList(g.ranks), f.Node, f.CPUCount, kit.Plural(f.CPUCount), cmp.Or(f.CPUs, "all"))
			r.crowded[f.Node] = true
		case f.Quota > 0 && float64(n) > f.Quota:
			r.warning("%s of node %s may use %.3g CPUs together (cpu.max of their control group)", rankList(g.ranks), f.Node, f.Quota)
			r.crowded[f.Node] = true
		}
	}
}

// judgeNodes looks at the common memory of nodes.
func (r *report) judgeNodes(e *examination) {
	if len(e.all) < 2 || e.world == nil {
		return
	}
	var unread []int
	why := ""
	for _, f := range e.all {
		if !f.Readable {
			unread = append(unread, f.Rank)
			why = cmp.Or(f.Ptrace, "unknown")
		}
	}
	if unread != nil {
		r.warning("the memory of %s can't be read by others of the node (ptrace_scope %s, a container without SYS_PTRACE, or another user): large messages are copied twice there, except from planner.Alloc", rankList(unread), why)
	}
}

// judgeSeals looks at the TLS of connections between nodes.
func (r *report) judgeSeals(e *examination) {
	sealed := slices.DeleteFunc(slices.Clone(e.all), func(f *facts) bool { return f.Secured == "" })
	if len(sealed) == 0 {
		return
	}
	for _, f := range sealed {
		left := time.Until(f.Expires)
		switch {
		case f.Expires.IsZero() || left > soon:
		case left < 0:
			r.problem("rank %d (%s): its certificate expired on %s: it gets no new connection", f.Rank, f.Host, f.Expires.UTC().Format(time.RFC1123))
		default:
			r.warning("rank %d (%s): its certificate expires in %v, on %s; files are read again when they change", f.Rank, f.Host, left.Round(time.Minute), f.Expires.UTC().Format(time.RFC1123))
		}
	}
	for _, g := range groupBy(sealed, func(f *facts) string { return fmt.Sprint(f.HasAES, f.Processor) }) {
		if f := r.factsOf(g.ranks[0]); !f.HasAES {
			r.warning("the processor of %s (%s) has no instructions for AES: sealing takes ten times as long there", rankList(g.ranks), f.Processor)
		}
	}
	if f := sealed[0]; f.Entrust && f.Expires.IsZero() {
		r.warning("the job's secret came by the launcher (%s): unless that encrypts, whoever is on the way can have read it, and come between ranks", f.Launcher)
	}
}

// judgePairs compares pairs with the slowest good link, and with each other.
func (r *report) judgePairs(e *examination, s slowest) {
	if e.job == nil {
		return
	}
	t := e.job.Topology
	byLevel := make([][]visit, t.Depth())
	for _, v := range e.visits {
		k := t.Meet(levels.Rank(v.A), levels.Rank(v.B))
		byLevel[k] = append(byLevel[k], v)
		if v.Ahead.Abs() > mostAhead && v.A == 0 {
			r.warning("the clock of rank %d (%s) is %v ahead of rank 0's: logs and traces of their ranks don't line up", v.B, e.all[v.B].Host, v.Ahead.Round(time.Millisecond))
		}
	}
	for k, visits := range byLevel {
		if len(visits) > 0 {
			r.judgeLevel(e, t.Level(k), visits, s[t.Level(k).Symbol])
		}
	}
}

// judgeLevel judges the pairs of a level.
func (r *report) judgeLevel(e *examination, l levels.Level, visits []visit, want expected) {
	stats := summarize(l, visits)
	r.Levels = append(r.Levels, stats)
	var slow, off badPairs
	for _, v := range visits {
		crowded := r.crowded[e.all[v.A].Node] || r.crowded[e.all[v.B].Node]
		name := fmt.Sprintf("r%d-r%d", v.A, v.B)
		least := min(v.Out, v.Back)
		switch {
		case crowded && !want.given:
		case want.Latency > 0 && v.Latency > want.Latency:
			slow.add(e, v, fmt.Sprintf("%s %v", name, roundTime(v.Latency)))
		case least < payload*want.Rate:
			slow.add(e, v, fmt.Sprintf("%s %s", name, kit.RateText(least)))
		case len(visits) < leastPeer:
		case least*farOff < stats.Rate.Median:
			off.add(e, v, fmt.Sprintf("%s %s", name, kit.RateText(least)))
		case v.Latency > farOff*stats.Latency.Median:
			off.add(e, v, fmt.Sprintf("%s %v", name, roundTime(v.Latency)))
		}
	}
	if slow.texts != nil {
		r.problem("%d of %d pairs of level %s are slower than %s, %v: %s", len(slow.texts), len(visits), l.Name, kit.RateText(want.Rate), want.Latency, &slow)
	}
	if off.texts != nil {
		r.warning("%d of %d pairs of level %s are %d times slower than the median (%s, %v): %s", len(off.texts), len(visits), l.Name, farOff, kit.RateText(stats.Rate.Median), roundTime(stats.Latency.Median), &off)
	}
}

// badPairs are pairs with bad times.
type badPairs struct {
	texts  []string
	shared []string // the nodes of all of them
}

// add adds a pair.
func (b *badPairs) add(e *examination, v visit, text string) {
	nodes := []string{e.all[v.A].Node, e.all[v.B].Node}
	if b.texts == nil {
		b.shared = nodes
	}
	b.shared = slices.DeleteFunc(b.shared, func(node string) bool { return !slices.Contains(nodes, node) })
	b.texts = append(b.texts, text)
}

// String lists the first few pairs. Of several pairs between nodes with one in common it says that node first.
func (b *badPairs) String() string {
	list := b.texts
	if len(list) > mostNamed {
		list = append(slices.Clip(list[:mostNamed]), "…")
	}
	text := strings.Join(list, ", ")
	if len(b.texts) > 1 && len(b.shared) == 1 {
		text = "all are with node " + b.shared[0] + ": " + text
	}
	return text
}
