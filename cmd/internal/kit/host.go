package kit

import (
	"cmp"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
)

// Version returns the module's version, and if known the revision of the source.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(v, s.Value[:min(12, len(s.Value))]) {
			v += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}

// Congestion returns the TCP congestion control of connections between nodes.
func Congestion() string {
	return cmp.Or(os.Getenv(env.Congestion), KernelFile("/proc/sys/net/ipv4/tcp_congestion_control"))
}

// KernelFile returns the first line of a file such as /proc/version, or nothing if
// there is no such file.
func KernelFile(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

// ProcessorModel returns the name of the first processor, or nothing if the kernel
// doesn't tell.
func ProcessorModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), "model name")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimLeft(line, "\t :")
}

// Hosts returns the names of the processes' nodes, or this host's name if ranks are goroutines.
func Hosts(c *planner.Comm) []string {
	if IsLaunched() {
		var all []string
		t := c.Topology()
		for rank := range levels.Rank(t.Size()) {
			if name := t.NodeName(rank); !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
		return all
	}
	name, err := os.Hostname()
	if err != nil {
		return nil
	}
	return []string{name}
}
