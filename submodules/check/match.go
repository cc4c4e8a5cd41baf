package check

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// match pairs each step that speaks to a peer with the peer's step that hears it.
func (w *world) match() error {
	for i := range w.mate {
		w.mate[i] = -1
	}
	for a, p := range w.progs {
		for _, peer := range p.Peers {
			if int(peer.Rank) == a || int(peer.Rank) >= len(w.progs) {
				return fmt.Errorf("rank %d talks to rank %d", a, peer.Rank)
			}
			if err := w.matchPair(a, peer); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) matchPair(a int, to submodules.Peer) error {
	b := int(to.Rank)
	var in []int
	if i := w.progs[b].PeerIndex(levels.Rank(a)); i >= 0 {
		for _, id := range w.progs[b].Peers[i].In {
			in = append(in, w.first[b]+int(id))
		}
	}
	for i, id := range to.Out {
		out := w.first[a] + int(id)
		if i >= len(in) {
			return fmt.Errorf("%s: rank %d never hears it", w.label(out), b)
		}
		s, r := w.step(out), w.step(in[i])
		switch {
		case (s.Kind == submodules.SendStep) != (r.Kind == submodules.RecvStep),
			s.Kind == submodules.SendStep && s.Len() != r.Len(),
			w.progs[a].Task(s).String() != w.progs[b].Task(r).String():
			return fmt.Errorf("%s meets %s", w.label(out), w.label(in[i]))
		}
		w.mate[out], w.mate[in[i]] = in[i], out
		if s.Kind == submodules.SendStep {
			w.report.Messages++
			w.report.Sent += s.Len()
		}
	}
	if len(to.Out) < len(in) {
		return fmt.Errorf("%s: rank %d never says it", w.label(in[len(to.Out)]), a)
	}
	for _, id := range to.In {
		// A rank that only hears has no Out on the other side.
		if w.progs[b].PeerIndex(levels.Rank(a)) < 0 {
			return fmt.Errorf("%s: rank %d never says it", w.label(w.first[a]+int(id)), b)
		}
	}
	return nil
}
