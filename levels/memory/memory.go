// Package memory tells how much memory is left: by the system, and by the control groups of the
// process, such as its container's. Only Linux says so.
package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// System returns the memory left by the system, bytes; 0: unknown.
func System() int64 { return systemIn("/") }

// Available returns the memory left by the system and this process's control groups, bytes; 0: unknown.
func Available() int64 { return availableIn("/") }

func systemIn(root string) (bytes int64) {
	data, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	_, rest, _ := strings.Cut(string(data), "MemAvailable:")
	if _, err := fmt.Sscan(rest, &bytes); err != nil {
		return 0
	}
	return bytes << 10
}

// availableIn is [Available] of a system with its files under root.
func availableIn(root string) (bytes int64) {
	if bytes = systemIn(root); bytes == 0 {
		return 0
	}
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		kind, path, _ := strings.Cut(rest, ":")
		mount, names := "sys/fs/cgroup", [...]string{"memory.max", "memory.current", "inactive_file ", "active_file ", "slab_reclaimable "}
		if kind == "memory" { // of the first version
			mount, names = "sys/fs/cgroup/memory", [...]string{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ", "total_active_file ", ""}
		} else if kind != "" {
			continue
		}
		for { // a group's limit holds for those inside it
			folder := filepath.Join(root, mount, path)
			read := func(name string) string {
				data, _ := os.ReadFile(filepath.Join(folder, name))
				return string(data)
			}
			if limit, ok := numberIn(read(names[0]), ""); ok {
				used, _ := numberIn(read(names[1]), "")
				stat := read("memory.stat")
				for _, name := range names[2:] { // dropped when memory is short
					n, _ := numberIn(stat, name)
					used -= n
				}
				bytes = min(bytes, max(1, limit-used))
			}
			if path == "/" || path == "." || path == "" {
				break
			}
			path = filepath.Dir(path)
		}
	}
	return bytes
}

// numberIn returns the number behind name at the beginning of a line of a text. ok is false
// without such a line, and for the word max.
func numberIn(text, name string) (n int64, ok bool) {
	for line := range strings.Lines(text) {
		if number, found := strings.CutPrefix(line, name); found {
			n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
