package join

import (
	"fmt"
	"io/fs"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels/ranges"
)

// maxKind is the longest [Peer.Kind], in bytes.
const maxKind = 200

// hostKind names the kind of a host by what the system (rooted at /) tells: the model of its processors, how many
// there are, and the speed of some of its interfaces. A host whose processors have no model is a kind of its own.
func hostKind(system fs.FS, host string, interfaces []string) string {
	model := processorModel(system)
	if model == "" {
		model = "host " + host
	}
	kind := fmt.Sprintf("%.120s, %d processors", model, processors(system))
	for _, name := range interfaces {
		text, err := fs.ReadFile(system, "sys/class/net/"+name+"/speed") // an error where there is no speed, such as loopback's
		if mbits, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil && mbits > 0 {
			return fmt.Sprintf("%s, %d Mbit/s", kind, mbits)
		}
	}
	return kind
}

// processorModel returns the model of the first processor, or of an ARM one its makers' numbers; empty: it isn't known.
func processorModel(system fs.FS) string {
	f, err := system.Open("proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	first := make([]byte, 4<<10) // of all processors it may be a MiB
	n, _ := f.Read(first)
	var parts []string
	for line := range strings.Lines(string(first[:n])) {
		key, value, _ := strings.Cut(line, ":")
		switch key, value = strings.TrimSpace(key), strings.TrimSpace(value); key {
		case "model name":
			return value
		case "CPU implementer", "CPU part":
			parts = append(parts, value)
		case "":
			return strings.Join(parts, " ") // the next processor
		}
	}
	return strings.Join(parts, " ")
}

// processors is how many the host has, whatever this process may use.
func processors(system fs.FS) int {
	if text, err := fs.ReadFile(system, "sys/devices/system/cpu/online"); err == nil {
		if all, err := ranges.Parse(strings.TrimSpace(string(text)), maxCPUs); err == nil {
			return len(all)
		}
	}
	return runtime.NumCPU()
}

// interfacesOf names the interfaces that have some of these addresses, in the order of the addresses.
func interfacesOf(addrs []netip.Prefix, nics map[netip.Addr]string) (names []string) {
	for _, a := range addrs {
		if name := nics[a.Addr()]; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Kinds lists the kinds of hosts in the job, sorted, each once: [Peer.Kind].
func (j *Job) Kinds() (all []string) {
	for _, p := range j.Peers {
		all = append(all, p.Kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
