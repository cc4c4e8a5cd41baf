package verdict

import (
	"cmp"
	"fmt"
	"slices"
)

// Flow is the bytes from one rank to another one on another node.
type Flow struct {
	From, To int     // ranks of the world
	Rate     float64 // of the last arrivals, bytes/s; 0: unknown
	Moved    float64 // bytes/s while something was on its way: less than Rate if little is at a time
	// Full: the sender always had more to send, so the way can carry Rate. Otherwise it
	// can carry Rate or more.
	Full bool
	Busy float64 // share of the time with something on its way, 0 to 1
}

// way is a direction between two nodes.
type way struct{ from, to string }

// slowPart is how slow a way must be beside the slowest of the faster ones: ways of a healthy
// machine differ, and their rates blend into each other.
const slowPart = 0.5

// crowdedPart is slowPart for ranks that wait longer for processors than they run: then rates tell more of
// the processors than of the network.
const crowdedPart = 0.1

// slowBurst is the slowPart of payloads with few bytes at a time: their rates depend on how soon processes
// are woken. burstWait is the least share of the time that ranks must wait for the rest of begun
// payloads: the first of these is mostly there at once.
const (
	slowBurst = 0.25
	burstWait = 0.05
)

// pace is the knowledge of a way.
type pace struct {
	way
	busy  float64 // of its busiest flow, as are the others
	rate  float64
	moved float64
	full  bool
}

// Bottleneck returns the node, or the two nodes, of ways with less than half of the other ways' rate,
// while the job waits for them. left is as senders counted it, and arrived as receivers did. Receivers
// know of short messages too; by them less than a quarter counts. If the ranks are crowded, and wait
// longer for processors than they run, less than a tenth counts. Otherwise a node is blamed if its busy ways are
// that much slower than all ways that don't touch it. nodes has the name of each rank's node.
// nil: there is none, or too little has passed to tell.
func Bottleneck(left, arrived []Flow, nodes []string, crowded bool) *Finding {
	part, burst := slowPart, slowBurst
	if crowded {
		part, burst = crowdedPart, crowdedPart
	}
	if f := findSlowWays(left, nodes, part, muchWait); f != nil {
		return f
	}
	if f := findSlowWays(arrived, nodes, burst, burstWait); f != nil {
		return f
	}
	return findSlowNode(left, nodes, burst)
}

// fewestWays that don't touch a node are needed to blame it for its own ways.
const fewestWays = 2

// findSlowNode finds a node that all slow ways touch: those of which a sender always had more to send, with less
// than a part of the rate of each way that doesn't touch the node. The node's other ways may have any rate: behind
// much that goes the other way even little takes long, and bursts look fast.
func findSlowNode(flows []Flow, nodes []string, part float64) (found *Finding) {
	all := paces(flows, nodes)
	for _, node := range slices.Compact(slices.Sorted(slices.Values(nodes))) {
		var slow, others []pace
		for _, p := range all {
			if p.from != node && p.to != node {
				others = append(others, p)
			} else if p.full && p.busy >= muchWait {
				slow = append(slow, p)
			}
		}
		if len(slow) == 0 || len(others) < fewestWays {
			continue
		}
		fastest := mostMoved(others)
		least := min(others[0].rate, fastest) // they are sorted
		slow = slices.DeleteFunc(slow, func(p pace) bool { return p.rate >= part*least })
		if len(slow) == 0 {
			continue
		}
		if found != nil {
			return nil // as well another node's
		}
		found = slowNetwork("of "+node, []string{node}, slow[len(slow)-1].rate, fastest, nodes)
	}
	return found
}

// findSlowWays finds ways with less than a part of the others' rate, busy for some share of
// the time.
func findSlowWays(flows []Flow, nodes []string, part, busy float64) *Finding {
	all := paces(flows, nodes)
	var slow []pace // full ways, up to a gap
	for i, p := range all {
		if p.full {
			slow = append(slow, p)
		}
		if len(slow) == 0 || i+1 == len(all) || p.rate >= part*all[i+1].rate {
			continue
		}
		fastest := mostMoved(all[i+1:])
		if p.rate < part*fastest {
			return blameWays(slow, all, fastest, part, busy, nodes)
		}
	}
	return nil
}

// mostMoved returns the rate of the way that moves most, bytes/s: rates of short bursts may be above what a way can carry.
func mostMoved(some []pace) float64 {
	return slices.MaxFunc(some, func(a, b pace) int { return cmp.Compare(a.moved, b.moved) }).moved
}

// paces returns the paces of all ways, the slowest first.
func paces(flows []Flow, nodes []string) []pace {
	by := map[way]*pace{}
	for _, f := range flows {
		if f.Rate <= 0 || min(f.From, f.To) < 0 || max(f.From, f.To) >= len(nodes) {
			continue
		}
		w := way{nodes[f.From], nodes[f.To]}
		p := by[w]
		if p == nil {
			p = &pace{way: w}
			by[w] = p
		}
		if f.Busy > p.busy { // the other rates may be of long ago
			p.busy, p.rate, p.moved, p.full = f.Busy, f.Rate, f.Moved, f.Full
		}
	}
	var all []pace
	for _, p := range by {
		if p.busy > 0 {
			all = append(all, *p)
		}
	}
	slices.SortFunc(all, func(a, b pace) int {
		return cmp.Or(cmp.Compare(a.rate, b.rate), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	return all
}

// blameWays names the common node or nodes of slow ways, if ranks wait for one of them. With two nodes it names the
// direction if the other one is fast, or nothing goes there. Where both are slow, one may be slow because of the other:
// confirmations of what goes one way stand behind what goes the other way.
func blameWays(slow, all []pace, others, part, busy float64, nodes []string) *Finding {
	named := sharedNodes(slow)
	if len(named) == 0 || !slices.ContainsFunc(slow, func(p pace) bool { return p.busy >= busy }) {
		return nil
	}
	where := "of " + named[0]
	if len(named) > 1 {
		back := way{named[1], named[0]}
		where = fmt.Sprintf("from %s to %s", named[0], named[1])
		if slices.ContainsFunc(all, func(p pace) bool { return p.way == back && p.rate < part*others }) {
			slices.Sort(named)
			where = fmt.Sprintf("between %s and %s", named[0], named[1])
		}
	}
	return slowNetwork(where, named, slow[len(slow)-1].rate, others, nodes)
}

// slowNetwork is the finding that the network somewhere is slow: of a node, or between two nodes.
func slowNetwork(where string, named []string, rate, others float64, nodes []string) *Finding {
	f := &Finding{Class: SlowLink, Nodes: named}
	f.Text = fmt.Sprintf("the network %s carries %s, others up to %s", where, rateText(rate), rateText(others))
	for r, node := range nodes {
		if slices.Contains(named, node) {
			f.Ranks = append(f.Ranks, r)
		}
	}
	return f
}

// sharedNodes returns the one node at an end of all slow ways, or the two of all;
// nil if they have nothing in common.
func sharedNodes(slow []pace) (common []string) {
	common = []string{slow[0].from, slow[0].to}
	for _, w := range slow[1:] {
		common = slices.DeleteFunc(common, func(node string) bool { return node != w.from && node != w.to })
	}
	return common
}

// rateText is 3.1 MB/s.
func rateText(bytes float64) string { return fmt.Sprintf("%.3g MB/s", bytes/1e6) }
