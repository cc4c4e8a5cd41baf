package executor

import (
	"context"
	"fmt"
	"net"

	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Setup is what a world is made of beside its configuration: which ranks live in this
// process, and what connects them with the others.
type Setup struct {
	// Size is how many ranks the world has, in all processes.
	Size int
	// Ports are how the ranks of this process reach the others.
	Ports []Port
	// Spin is how often a rank that waits yields before it sleeps.
	Spin int
	// Control connects this process with those of the other ranks, see [World.Listen]. nil:
	// all ranks live here.
	Control ControlPlane
	// Lost, if not nil, is called when Control has lost a rank, before the engine hears it.
	Lost func(rank levels.Rank, err error)
	// Stop, if not nil, ends what carries messages. [World.Close] calls it when nobody
	// drives any more; ctx ends after [Config.CloseTimeout].
	Stop func(ctx context.Context)
}

// Port is how one rank of this process reaches the others.
type Port struct {
	Rank    levels.Rank
	Link    wire.Link
	Sleeper wire.Sleeper
	Memory  wire.Memory
	// Reach is what it takes to speak with each rank of the world. nil: all are near.
	Reach []wire.Reach
}

// ControlPlane is how processes of a job tell each other of failures and goodbyes.
type ControlPlane interface {
	// Dial connects to a rank; [World.Take] takes the other end if the purpose is
	// [NotePurpose].
	Dial(ctx context.Context, peer levels.Rank, purpose uint8) (net.Conn, error)
	// Broadcast and Send carry short messages along the control tree.
	Broadcast(kind uint8, payload []byte) error
	Send(to levels.Rank, kind uint8, payload []byte) error
	// CutOff lists the ranks that live and that Broadcast and Send don't reach any more;
	// Dial does.
	CutOff() []levels.Rank
	// OnControl sets the handler of what others Broadcast and Send.
	OnControl(handler func(from levels.Rank, kind uint8, payload []byte))
	// OnLost sets the handler of losses.
	OnLost(handler func(levels.Rank, error))
	// Close says goodbye and leaves.
	Close(ctx context.Context) error
}

// New makes a world, which exists until Close. Each rank of this process has a port;
// without a control plane all ranks do. The world owns the control plane from then on and
// closes it.
func New(config Config, s Setup) (*World, error) {
	w := &World{config: config.withDefaults(), limits: flow.NewLimits(config.EagerMax, config.EagerBudget), endpoints: make([]*Endpoint, s.Size), spin: s.Spin, stop: s.Stop}
	all := make([]levels.Rank, s.Size)
	for r := range all {
		all[r] = levels.Rank(r)
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
		w.endpoints[p.Rank] = newEndpoint(w, p)
	}
	if err := w.complete(s); err != nil {
		return nil, err
	}
	w.local(func(e *Endpoint) { e.comm(0).define(all) })
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

// Listen lets a world hear its control plane. Connections for [World.Take] may come as
// soon as the world is made.
func (w *World) Listen() { w.control.begin() }

// Take takes over a connection that a rank has dialled with [NotePurpose].
func (w *World) Take(from levels.Rank, c net.Conn) { w.control.accept(from, c) }

// Abandon ends the engines of a world that could not be completed: of what Close does, no
// rank is told and neither Setup.Stop nor the control plane's Close is called.
func (w *World) Abandon() { w.local((*Endpoint).stop) }

// Hold calls f with the engine's lock held, as the methods of its link are called. A link
// that has to end, or learns something by itself, uses it.
func (e *Endpoint) Hold(f func(s wire.Sink)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e.ears())
}
