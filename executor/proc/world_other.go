//go:build !linux

package proc

import (
	"context"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
)

// New makes the world of a rank in a process. It works on Linux only.
func New(context.Context, Job, levels.Rank, *levels.Topology, Config) (*executor.World, error) {
	return nil, Supported()
}
