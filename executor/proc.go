package executor

import (
	"context"
	"net"

	"github.com/tierflow/tierflow/levels"
)

// ProcessConfig is what a world of processes may be told. The zero value is ready to use.
type ProcessConfig struct {
	Config
	// NoPeerReads keeps processes from reading each other's memory by process_vm_readv, as
	// if the kernel forbade it.
	NoPeerReads bool
	// Congestion is the TCP congestion control of connections to other nodes, one that the
	// kernel has and allows, such as reno. Empty: the system's choice.
	Congestion string
}

// Job is the control plane of a job of processes, as [NewProcess] needs it; package join
// has one.
type Job interface {
	ControlPlane
	// DialUnix is Dial to a rank of the same node, over a unix socket.
	DialUnix(ctx context.Context, peer levels.Rank, purpose uint8) (*net.UnixConn, error)
	// Accept sets the handler of incoming connections.
	Accept(handler func(peer levels.Rank, purpose uint8, c net.Conn))
}
