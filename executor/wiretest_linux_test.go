package executor_test

import (
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
	"github.com/tierflow/tierflow/levels"
)

// The links of processes do what links do, over shared memory and over TCP.
func TestProcessLinks(t *testing.T) {
	for _, topo := range []string{"1x2", "2x1"} {
		t.Run(topo, func(t *testing.T) {
			h, _ := parse(t, topo, "")
			wiretest.Run(t, func(t *testing.T) (a, b wiretest.Port) {
				p := openProcesses(t, h, proc.Config{}, nil)
				t.Cleanup(func() { closeProcesses(t, p) })
				for r, port := range []*wiretest.Port{&a, &b} {
					executor.OnLink(p.World, levels.Rank(r), func(l wire.Link) {
						port.Link = l
						port.Sleeper, _ = l.(wire.Sleeper)
					})
				}
				return a, b
			})
		})
	}
}
