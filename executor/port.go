package executor

import (
	"context"
	"net"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Setup is the ground of a world, beside its configuration: the ranks in this process, and their
// ports to the others.
type Setup struct {
	// Size is the number of ranks in the world, in all processes.
	Size int
	// Ports lead from the ranks of this process to the others.
	Ports []Port
	// Spin is the number of yields before a waiting rank sleeps.
	Spin int
	// Control connects this process with those of the other ranks, see [World.Listen]. nil: all
	// ranks live here.
	Control ControlPlane
	// Lost, if not nil, is called when Control has lost a rank, before the engine hears it.
	Lost func(rank levels.Rank, err error)
	// Stop, if not nil, ends the transport. [World.Close] calls it after the end of all driving;
	// ctx ends after [Config.CloseTimeout].
	Stop func(ctx context.Context)
}

// Port leads from one rank of this process to the others.
type Port struct {
	Rank    levels.Rank
	Link    wire.Link
	Sleeper wire.Sleeper
	Memory  wire.Memory
	// Reach is the distance to each rank of the world. nil: all are near.
	Reach []wire.Reach
}

// ControlPlane carries failures and goodbyes between the processes of a job.
type ControlPlane interface {
	// Dial connects to a rank; [World.Take] takes the other end if the purpose is [NotePurpose],
	// and [World.TakeClock] if it is [ClockPurpose].
	Dial(ctx context.Context, peer levels.Rank, purpose uint8) (net.Conn, error)
	// Recall is Dial to a rank that may count as lost.
	Recall(ctx context.Context, peer levels.Rank, purpose uint8) (net.Conn, error)
	// Gone finds out whether the end of a rank is certain: it has left, or its host says that
	// nobody is there any more.
	Gone(ctx context.Context, peer levels.Rank) bool
	// Lives finds out whether a rank can be reached and takes connections.
	Lives(ctx context.Context, peer levels.Rank) bool
	// Lose counts a rank as lost, though it may live: it goes on without this one, or the others do without it. tell: they
	// hear of it.
	Lose(peer levels.Rank, why error, tell bool)
	// Broadcast and Send carry short messages along the control tree.
	Broadcast(kind uint8, payload []byte) error
	Send(to levels.Rank, kind uint8, payload []byte) error
	// LetOut waits until everything sent has left this process, which may then end itself.
	LetOut()
	// CutOff lists the living ranks out of reach for Broadcast and Send; Dial reaches them.
	CutOff() []levels.Rank
	// OnControl sets the handler of the others' Broadcast and Send.
	OnControl(handler func(from levels.Rank, kind uint8, payload []byte))
	// OnLost sets the handler of losses.
	OnLost(handler func(levels.Rank, error))
	// Close says goodbye and leaves.
	Close(ctx context.Context) error
}
