// Package proc makes the world of a rank in a process of its own.
//
// The rank has shared memory with the ranks of its node, TCP to the others and one epoll
// over all of them. Segments and doorbells are exchanged when the world is made;
// connections are opened when they are needed. It needs Linux: elsewhere [New] is an error.
//
//	world, err := proc.New(ctx, job, rank, topology, proc.Config{})
package proc

import (
	"context"
	"fmt"
	"net"
	"runtime"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/tcp"
	"github.com/tierflow/tierflow/levels"
)

// Supported says why ranks can't be processes on this system; nil: they can.
func Supported() error { return supportedOn(runtime.GOOS) }

func supportedOn(system string) error {
	if system == "linux" {
		return nil
	}
	return fmt.Errorf("ranks as processes need Linux, its epoll and memfd, and this is %s; goroutine ranks work here", system)
}

// UsableCongestion complains of a TCP congestion control unless the kernel has it and allows it here.
func UsableCongestion(name string) error { return tcp.UsableCongestion(name) }

// Config has the settings of a world of processes. The zero value is ready to use.
type Config struct {
	executor.Config
	// NoPeerReads keeps processes from reading each other's memory by process_vm_readv, as
	// if the kernel forbade it.
	NoPeerReads bool
	// Spread moves a rank that seems to share a processor with another one to a share of the node's, if all may
	// run on the same and there are enough. None stays bound. Else the kernel alone moves them.
	Spread bool
	// Congestion is the TCP congestion control of connections to other nodes: one of
	// those in the kernel and allowed there, such as reno. Empty: the system's choice.
	Congestion string
}

// Job is the control plane of a job of processes, as [New] needs it; package join
// has one.
type Job interface {
	executor.ControlPlane
	// DialUnix is Dial to a rank of the same node, over a unix socket.
	DialUnix(ctx context.Context, peer levels.Rank, purpose uint8) (*net.UnixConn, error)
	// Accept sets the handler of incoming connections.
	Accept(handler func(peer levels.Rank, purpose uint8, c net.Conn))
}
