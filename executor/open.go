package executor

import (
	"fmt"
	"net"
	"time"

	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/internal/ballot"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// New makes a world; it exists until Close. Each rank of this process has a port, and without a
// control plane all ranks do. From then on the world owns the control plane and closes it.
func New(config Config, s Setup) (*World, error) {
	w := &World{
		config: config.withDefaults(), limits: flow.NewLimits(config.EagerMax, config.EagerBudget),
		endpoints: make([]*Endpoint, s.Size), spin: s.Spin, stop: s.Stop,
		askTurn: make(chan struct{}, 1), lastSearch: map[CommID]time.Time{}, retained: map[CommID]int{},
	}
	for _, p := range s.Ports {
		switch {
		case p.Rank < 0 || int(p.Rank) >= s.Size:
			return nil, fmt.Errorf("a port of rank %d; ranks are 0 to %d", p.Rank, s.Size-1)
		case w.endpoints[p.Rank] != nil:
			return nil, fmt.Errorf("two ports of rank %d", p.Rank)
		case p.Link == nil || p.Sleeper == nil || p.Memory == nil:
			return nil, fmt.Errorf("rank %d needs a link, a sleeper and a memory", p.Rank)
		case p.Reach != nil && len(p.Reach) != s.Size:
			return nil, fmt.Errorf("rank %d says how to reach %d ranks of %d", p.Rank, len(p.Reach), s.Size)
		}
		e := newEndpoint(w, p)
		e.voter = ballot.NewVoter(p.Rank, e.ballotPort())
		w.endpoints[p.Rank] = e
	}
	if err := w.complete(s); err != nil {
		return nil, err
	}
	all := w.everyRank()
	w.eachLocal(func(e *Endpoint) { e.ensureComm(0).defineMembers(all) })
	return w, nil
}

// complete gives the world its control plane if ranks live elsewhere.
func (w *World) complete(s Setup) error {
	if s.Control == nil {
		if len(s.Ports) < s.Size {
			return fmt.Errorf("%d ports of %d ranks and no control plane: ranks that live elsewhere need one", len(s.Ports), s.Size)
		}
		return nil
	}
	if len(s.Ports) != 1 {
		return fmt.Errorf("%d ports and a control plane, which connects processes of one rank each", len(s.Ports))
	}
	w.control = newControl(w, s.Control, s.Ports[0].Rank)
	w.control.onLost = s.Lost
	return nil
}

// SetSpin changes the number of yields before a waiting rank sleeps, see [Setup]. It may be called
// until the first run.
func (w *World) SetSpin(n int) {
	w.eachLocked(func(e *Endpoint) {
		w.spin = n
	})
}

// Listen lets a world hear its control plane. Connections for [World.Take] may come as soon as the
// world is made.
func (w *World) Listen() { w.control.begin() }

// Take takes over a connection dialled by a rank with [NotePurpose].
func (w *World) Take(from levels.Rank, c net.Conn) { w.control.acceptNote(from, c) }

// Abandon ends the engines of a world without completing it. Unlike Close it tells no rank, and
// calls neither Setup.Stop nor the control plane's Close.
func (w *World) Abandon() { w.eachLocal((*Endpoint).stopDriving) }

// Hold calls f with the engine's lock held, as the methods of its link are called. Links use it
// when they have to end, or learn something by themselves.
func (e *Endpoint) Hold(f func(s wire.Sink)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e.sink())
}
