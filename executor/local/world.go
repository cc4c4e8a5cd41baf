package local

import (
	"context"
	"runtime"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// New makes a world of n ranks. It exists until Close.
func New(n int, config executor.Config) *executor.World { return NewShaped(n, config, nil) }

// NewShaped makes a world of n ranks whose messages take their time between ranks, as
// shaper says; if it is nil they don't.
func NewShaped(n int, config executor.Config, shaper Shaper) *executor.World {
	if config.RecorderEvents == 0 {
		config.RecorderEvents = flight.DefaultEvents / 4
	}
	// With a core for every rank a spin saves two switches and is about as long as
	// they take, tens of microseconds; with less, a waiting rank holds up the one it
	// waits for.
	looks, processors := executor.FewestLooks, runtime.GOMAXPROCS(0)
	setup := executor.Setup{Size: n, Spin: 1}
	if n <= processors {
		setup.Spin, looks = 400, executor.MostLooks
	}
	h := &hub{shaper: shaper}
	if n < crowd*processors && shaper == nil {
		h.pairs = newPairs(n)
	}
	for r := range levels.Rank(n) {
		box := newInbox()
		h.inboxes = append(h.inboxes, box)
		l := &link{inbox: box, hub: h, rank: r, polls: looks}
		setup.Ports = append(setup.Ports, executor.Port{Rank: r, Link: l, Sleeper: l, Memory: wire.OneProcess{}})
	}
	if shaper != nil {
		h.clock = newClock(h)
		setup.Stop = func(context.Context) { h.clock.stop() }
	}
	w, err := executor.New(config, setup)
	if err != nil {
		panic("executor: a world of goroutine ranks: " + err.Error()) // each has a port, and they need no more
	}
	return w
}
