package derived

import (
	"slices"

	"github.com/tierflow/tierflow/dag"
)

// beginBurst begins a burst of a rank: the first ready send to each peer, by their numbers.
//
//	ready   0>1 0>2 0>1 0>2     bursts   0>1 0>2, then 0>1 0>2
func (w *walker) beginBurst(rank int, now moment) {
	r := &w.ranks[rank]
	slices.Sort(r.sends)
	var all []dag.ID
	var peers []int32
	bytes := 0.0
	rest := r.sends[:0]
	from := moment{}
	for _, id := range r.sends {
		s := r.prog.Step(id)
		if slices.Contains(peers, s.Peer) {
			rest = append(rest, id)
			continue
		}
		all, peers = append(all, id), append(peers, s.Peer)
		bytes += float64(s.Len())
		from = laterOf(from, r.ready[id])
	}
	r.sends = rest
	k := float64(len(all))
	times := w.gamma.Of(len(all) + 1)
	// The burst waited for its data, or for the burst before.
	began := from
	if from.time < now.time {
		began = r.freed
	}
	r.busy = true
	r.freed = w.endMoment(began, Coeff{Alpha: times, Beta: times * bytes / k})
	for i := 0; w.isStaggered && len(all) > 1; i, all = i+1, all[1:] {
		part := w.gamma.Of(i + 2)
		at := w.endMoment(began, Coeff{Alpha: part, Beta: part * bytes / k})
		w.push(event{at: at, rank: rank, burst: all[:1], began: began, isPart: true})
	}
	w.push(event{at: r.freed, rank: rank, burst: all, began: began})
}

// inlet is the messages from others to a rank.
type inlet struct {
	began moment // of overlapping messages until now
	ended moment
	count int
	bytes float64
}

// hearMessage returns when a message is there. It was sent from began to ended. Overlapping
// messages share the inlet.
func (p *inlet) hearMessage(w *walker, began, ended moment, bytes float64) moment {
	if p.count == 0 || began.time >= p.ended.time {
		*p = inlet{began: began}
	}
	p.count++
	p.bytes += bytes
	times := w.gamma.Of(p.count + 1)
	all := w.endMoment(p.began, Coeff{Alpha: times, Beta: times * p.bytes / float64(p.count)})
	p.ended = laterOf(ended, all)
	return p.ended
}
