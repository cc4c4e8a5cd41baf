package join

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/tierflow/tierflow/levels/ranges"
)

// maxCPUs bounds the CPUs in a list; kernels know fewer.
const maxCPUs = 1 << 16

// affinity is the CPUs allowed to a process.
type affinity struct {
	count int
	has   func(cpu int) bool
}

// numaDomain names the one NUMA domain with all CPUs of mine, "" if they lie
// in several or the system (rooted at /sys) tells of none.
func numaDomain(sys fs.FS, mine affinity) (string, error) {
	lists, err := fs.Glob(sys, "devices/system/node/node[0-9]*/cpulist")
	if err != nil {
		return "", err
	}
	for _, name := range lists {
		text, err := fs.ReadFile(sys, name)
		if err != nil {
			return "", err
		}
		cpus, err := ranges.Parse(strings.TrimSpace(string(text)), maxCPUs) // none: a domain of memory only
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		inside := 0
		for _, cpu := range cpus {
			if mine.has(cpu) {
				inside++
			}
		}
		switch {
		case inside == 0:
			continue
		case inside < mine.count:
			return "", nil
		}
		domain := "numa" + strings.TrimPrefix(path.Base(path.Dir(name)), "node")
		return domain, checkDomain("NUMA domain", domain)
	}
	return "", nil
}

// domain returns the domain of the configuration, else of the system. Nonsense from the
// system is worth a line, not a failed join.
func (c *Config) domain(system func() (string, error)) string {
	if c.NUMA != "" {
		return c.NUMA
	}
	domain, err := system()
	if err != nil {
		c.logger().Warn("NUMA domain unknown", "rank", c.Rank, "error", err)
		return ""
	}
	return domain
}
