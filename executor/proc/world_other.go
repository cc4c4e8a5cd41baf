//go:build !linux

package proc

import (
	"context"
	"errors"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
)

// New makes the world of a rank that is a process. It works on Linux only.
func New(context.Context, Job, levels.Rank, *levels.Topology, Config) (*executor.World, error) {
	return nil, errors.New("ranks as processes need Linux: epoll and memfd; goroutine ranks work here")
}
