package nbc

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// mostAtOnce bounds a rank's partners in one round of a linear alltoall: MPICH's
// MPIR_CVAR_ALLTOALL_THROTTLE.
const mostAtOnce = 32

// linearAlltoall: all exchange with all in one round, or in several of 32 partners.
func linearAlltoall(r *rounds, c *submodules.Call) { exchangeInRounds(r, c, mostAtOnce) }

// pairwiseAlltoall: in each round a rank exchanges with one other.
func pairwiseAlltoall(r *rounds, c *submodules.Call) { exchangeInRounds(r, c, 1) }

// exchangeInRounds has each rank exchange with so many others in a round, in the order of a
// tournament. Data received elsewhere than in its place is copied there in a round of its own.
// The memory serves again from then on.
func exchangeInRounds(r *rounds, c *submodules.Call, most int) {
	r.open = append(r.open, c.KeepOwn(r.e, r.gate)...)
	n := len(c.Group.Ranks)
	var partners []int
	for round := range trees.Rounds(n) {
		if member := trees.Partner(c.Me, n, round); member >= 0 {
			partners = append(partners, member)
		}
	}
	rooms := make([]tasks.Span, most)
	for len(partners) > 0 {
		now := partners[:min(most, len(partners))]
		partners = partners[len(now):]
		exchangeAtOnce(r, c, now, rooms)
	}
}

// exchangeAtOnce is a round with some partners.
func exchangeAtOnce(r *rounds, c *submodules.Call, partners []int, rooms []tasks.Span) {
	goes, comes := make([]submodules.Parcel, len(partners)), make([]submodules.Parcel, len(partners))
	for i, member := range partners {
		goes[i] = c.Outgoing(r.e, member, r.gate)
		comes[i] = c.Incoming(member, func(n int64) tasks.Span {
			if rooms[i].Len < n {
				rooms[i] = r.e.Scratch(n)
			}
			return rooms[i].Cut(0, n)
		})
		if goes[i].Packed != submodules.None {
			r.open = append(r.open, goes[i].Packed)
		}
	}
	if len(r.open) > 0 {
		r.end()
	}
	for i, member := range partners {
		r.send(c.Group.Ranks[member], goes[i].Messages...)
		r.recv(c.Group.Ranks[member], comes[i].Messages...)
	}
	r.end()
	for i := range comes {
		if comes[i].IsApart() {
			r.open = append(r.open, comes[i].Settle(r.e, r.gate))
		}
	}
	r.end()
}
