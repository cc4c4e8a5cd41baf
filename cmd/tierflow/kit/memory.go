package kit

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/costs/sim"
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
	bytes = availableIn("/")
	if limit := ownLimit(); limit > 0 && (bytes == 0 || limit < bytes) {
		bytes = limit
	}
	return bytes
}

// SystemMemory returns the memory left by the system, bytes; 0: unknown.
func SystemMemory() int64 { return systemMemoryIn("/") }

func systemMemoryIn(root string) (bytes int64) {
	data, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	_, rest, _ := strings.Cut(string(data), "MemAvailable:")
	if _, err := fmt.Sscan(rest, &bytes); err != nil {
		return 0
	}
	return bytes << 10
}

// availableIn returns the memory left by the system and this process's control groups, bytes; 0
// without their files under root.
func availableIn(root string) (bytes int64) {
	if bytes = systemMemoryIn(root); bytes == 0 {
		return 0
	}
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		kind, path, _ := strings.Cut(rest, ":")
		mount, names := "sys/fs/cgroup", [...]string{"memory.max", "memory.current", "inactive_file "}
		if kind == "memory" { // of the first version
			mount, names = "sys/fs/cgroup/memory", [...]string{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "}
		} else if kind != "" {
			continue
		}
		for { // a group's limit holds for those inside it
			folder := filepath.Join(root, mount, path)
			if limit, ok := numberIn(filepath.Join(folder, names[0]), ""); ok {
				used, _ := numberIn(filepath.Join(folder, names[1]), "")
				files, _ := numberIn(filepath.Join(folder, "memory.stat"), names[2]) // dropped when memory is short
				bytes = min(bytes, max(1, limit-used+files))
			}
			if path == "/" || path == "." || path == "" {
				break
			}
			path = filepath.Dir(path)
		}
	}
	return bytes
}

// numberIn returns the number behind name at the beginning of a line of a file. ok is false
// without such a line, and for the word max.
func numberIn(file, name string) (n int64, ok bool) {
	data, _ := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		if text, found := strings.CutPrefix(line, name); found {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
