package kit

import (
	"fmt"

	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels/memory"
	"github.com/tierflow/tierflow/tasks"
)

// Less is advice for a request too large for the memory.
const Less = "give fewer ranks (--topo), fewer bytes, or a plan of larger segments"

// CheckSimulation complains if so many simulations of c beside each other don't fit into memory.
// It returns the need of one.
func CheckSimulation(c *sim.Compilation, times int) (sim.Need, error) {
	need, err := c.Need()
	if err != nil {
		return need, UsageError(err)
	}
	return need, CheckMemory(SimulationText(c, need), need.Bytes*int64(times), Less)
}

// SimulationText names a simulation by its need.
func SimulationText(c *sim.Compilation, n sim.Need) string {
	return fmt.Sprintf("simulating %d steps on %d ranks", n.Steps, c.Topology.Size())
}

// FitsMemory reports whether bytes are at most half of the available memory: the rest is for
// others, and for garbage. If the system doesn't tell, everything fits.
func FitsMemory(bytes int64) bool {
	there := memoryThere()
	return there == 0 || bytes <= there/2
}

// CheckMemory complains if what needs more bytes than fit, see [FitsMemory]. advice says what to
// give instead.
func CheckMemory(what string, bytes int64, advice string) error {
	if FitsMemory(bytes) {
		return nil
	}
	return Usagef("%s needs some %s of memory, more than half of the %s that are there: %s", what, memoryText(bytes), memoryText(memoryThere()), advice)
}

// NeedText says that what needs so many bytes of memory, for [NewProgress].
func NeedText(what string, bytes int64) string {
	return what + ": some " + memoryText(bytes) + " of memory"
}

// memoryText is a number of bytes of memory, in whole MiB.
func memoryText(bytes int64) string { return tasks.FormatBytes(max(bytes>>20, 1) << 20) }

// memoryThere returns the memory left for this process, bytes: the system's, within the limits of
// control groups and its own. 0: unknown.
func memoryThere() (bytes int64) {
	bytes = memory.Available()
	if limit := ownLimit(); limit > 0 && (bytes == 0 || limit < bytes) {
		bytes = limit
	}
	return bytes
}
