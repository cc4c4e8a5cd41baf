//go:build !amd64

package kernel

import "github.com/tierflow/tierflow/tasks"

// assembly has nothing on this architecture.
func assembly(tasks.OpID, tasks.Datatype) (blockFunc, string) { return nil, "" }

// copyPast can't on this architecture.
func copyPast(_, _ []byte) bool { return false }
