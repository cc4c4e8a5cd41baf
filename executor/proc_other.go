//go:build !linux

package executor

import (
	"context"
	"errors"

	"github.com/tierflow/tierflow/levels"
)

// NewProcess makes the world of a rank that is a process. It works on Linux only.
func NewProcess(context.Context, Job, levels.Rank, *levels.Topology, ProcessConfig) (*World, error) {
	return nil, errors.New("ranks as processes need Linux: epoll and memfd; goroutine ranks work here")
}
