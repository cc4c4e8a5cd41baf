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

// Less is what to give in place of a request that does not fit into memory.
const Less = "give fewer ranks (--topo), fewer bytes, or a plan of larger segments"

// CheckSimulation complains if one simulation of what c compiles does not fit, and times of
// them beside each other don't. It returns what one needs.
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

// FitsMemory reports whether bytes are no more than half of the memory that is there: the
// rest is for others, and for what has not been collected yet. Where nobody says how much
// there is, all fits.
func FitsMemory(bytes int64) bool {
	there := memoryThere()
	return there == 0 || bytes <= there/2
}

// CheckMemory complains if bytes don't fit, see [FitsMemory]. what needs them, and advice
// says what to give in its place.
func CheckMemory(what string, bytes int64, advice string) error {
	if FitsMemory(bytes) {
		return nil
	}
	return Usagef("%s needs some %s of memory, more than half of the %s that are there: %s", what, MemoryText(bytes), MemoryText(memoryThere()), advice)
}

// MemoryText is a number of bytes of memory, in whole MiB.
func MemoryText(bytes int64) string { return tasks.FormatBytes(max(bytes>>20, 1) << 20) }

// memoryThere returns the memory that this process may still take, bytes: the system's, less
// what control groups and its own limits withhold. 0: nobody says.
func memoryThere() (bytes int64) {
	bytes = availableIn("/")
	if limit := ownLimit(); limit > 0 && (bytes == 0 || limit < bytes) {
		bytes = limit
	}
	return bytes
}

// availableIn returns the memory that the system and this process's control groups leave,
// bytes; 0 without their files under root.
func availableIn(root string) (bytes int64) {
	data, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	_, rest, _ := strings.Cut(string(data), "MemAvailable:")
	if _, err := fmt.Sscan(rest, &bytes); err != nil {
		return 0
	}
	bytes <<= 10
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
				files, _ := numberIn(filepath.Join(folder, "memory.stat"), names[2]) // which are dropped when memory is short
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

// numberIn returns the number that follows name at the beginning of a line of a file. It is
// not there if the line is not, or says max.
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
