package launch

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels/ranges"
)

// Choices of processors for the ranks of a host.
const (
	// bindShare gives each rank an equal share of the host's processors, whole cores if
	// there are enough.
	bindShare = "share"
	// bindCore gives each rank one core.
	bindCore = "core"
	// bindNUMA gives each rank the processors of one NUMA domain.
	bindNUMA = "numa"
	// bindNone leaves ranks to the kernel.
	bindNone = "none"
)

// Bindings lists the values of [Options.Bind].
const Bindings = bindShare + ", " + bindCore + ", " + bindNUMA + " or " + bindNone

func checkBinding(name string) error {
	if !slices.Contains([]string{"", bindShare, bindCore, bindNUMA, bindNone}, name) {
		return fmt.Errorf("bind %q: allowed are %s", name, Bindings)
	}
	return nil
}

// processor is one that a program may run on.
type processor struct {
	number int
	core   int // the lowest processor of its core
	domain int // NUMA domain; 0 if the system tells of none
}

// readProcessors describes the allowed processors of the system rooted at sys, those of a
// domain and of a core side by side.
func readProcessors(sys fs.FS, allowed []int) []processor {
	domains := map[int]int{}
	lists, _ := fs.Glob(sys, "devices/system/node/node[0-9]*/cpulist") // its error is a bad pattern
	for _, name := range lists {
		var domain int
		fmt.Sscanf(name, "devices/system/node/node%d/", &domain)
		for _, cpu := range readList(sys, name) {
			domains[cpu] = domain
		}
	}
	var all []processor
	for _, cpu := range allowed {
		p := processor{number: cpu, core: cpu, domain: domains[cpu]}
		siblings := readList(sys, fmt.Sprintf("devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		if len(siblings) > 0 {
			p.core = slices.Min(siblings)
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b processor) int {
		return cmp.Or(a.domain-b.domain, a.core-b.core, a.number-b.number)
	})
	return all
}

// readList reads a file with a list such as 0-3,8. A missing or senseless one names nobody:
// binding is then as if the system told nothing.
func readList(sys fs.FS, name string) []int {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return nil
	}
	all, _ := ranges.Parse(strings.TrimSpace(string(text)), 1<<16)
	return all
}

// bind returns the processors of each of a host's ranks. nil: no rank is bound. Without a binding
// ranks get shares if there is a processor for each.
func bind(binding string, ranks int, host []processor) ([][]int, error) {
	if binding == "" && ranks <= len(host) {
		binding = bindShare
	}
	switch binding {
	case bindShare:
		if ranks > len(host) {
			return nil, fmt.Errorf("--bind %s: %d ranks on %d processors; start fewer, or leave them to the kernel with --bind %s",
				binding, ranks, len(host), bindNone)
		}
		return shares(ranks, cut(host, coresIfEnough(ranks, host))), nil
	case bindCore:
		cores := cut(host, sameCore)
		if ranks > len(cores) {
			return nil, fmt.Errorf("--bind %s: %d ranks on %d cores; start fewer, or use --bind %s or %s",
				binding, ranks, len(cores), bindShare, bindNone)
		}
		return cores[:ranks], nil
	case bindNUMA:
		domains := cut(host, func(a, b processor) bool { return a.domain == b.domain })
		var all [][]int
		for r := range ranks {
			all = append(all, domains[r*len(domains)/ranks])
		}
		return all, nil
	}
	return nil, nil
}

func sameCore(a, b processor) bool { return a.core == b.core }

// coresIfEnough returns the units for ranks to share: cores, or processors if there are more
// ranks.
func coresIfEnough(ranks int, host []processor) (together func(a, b processor) bool) {
	if len(cut(host, sameCore)) >= ranks {
		return sameCore
	}
	return func(a, b processor) bool { return a.number == b.number }
}

// cut cuts processors into groups of neighbours belonging together.
func cut(host []processor, together func(a, b processor) bool) (groups [][]int) {
	for i, p := range host {
		if i == 0 || !together(host[i-1], p) {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], p.number)
	}
	return groups
}

// shares deals groups to ranks, neighbours to one rank, and as many to each as to any
// other, or one less.
func shares(ranks int, groups [][]int) [][]int {
	all := make([][]int, ranks)
	for r := range all {
		for _, g := range groups[r*len(groups)/ranks : (r+1)*len(groups)/ranks] {
			all[r] = append(all[r], g...)
		}
	}
	return all
}
