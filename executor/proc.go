package executor

import (
	"context"
	"net"

	"github.com/tierflow/tierflow/levels"
)

// Job is the control plane of a job of processes, as [NewProcess] needs it;
// package join has one.
type Job interface {
	// Dial connects to a rank; its Accept handler gets the other end.
	Dial(ctx context.Context, peer levels.Rank, purpose uint8) (net.Conn, error)
	// DialUnix is Dial to a rank of the same node, over a unix socket.
	DialUnix(ctx context.Context, peer levels.Rank, purpose uint8) (*net.UnixConn, error)
	// Accept sets the handler of incoming connections.
	Accept(handler func(peer levels.Rank, purpose uint8, c net.Conn))
	// Broadcast and Send carry short messages along the control tree.
	Broadcast(kind uint8, payload []byte) error
	Send(to levels.Rank, kind uint8, payload []byte) error
	// CutOff lists the ranks that live and that Broadcast and Send don't reach any more;
	// Dial does.
	CutOff() []levels.Rank
	OnControl(handler func(from levels.Rank, kind uint8, payload []byte))
	OnLost(handler func(levels.Rank, error))
	// Exchange is an allgather of short texts.
	Exchange(ctx context.Context, blob []byte) ([][]byte, error)
	// Close says goodbye and leaves.
	Close(ctx context.Context) error
}
