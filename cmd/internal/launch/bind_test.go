package launch

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// twoDomains is a host of two NUMA domains with two cores each, of two processors each,
// numbered as most systems do: second processors of cores follow all first ones.
func twoDomains() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	sys := fstest.MapFS{
		"devices/system/node/node0/cpulist": file("0-1,4-5"),
		"devices/system/node/node1/cpulist": file("2-3,6-7"),
	}
	for cpu := range 8 {
		sys[fmt.Sprintf("devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)] = file(fmt.Sprintf("%d,%d", cpu%4, cpu%4+4))
	}
	return sys
}

func TestBind(t *testing.T) {
	eight := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		binding string
		ranks   int
		allowed []int
		want    string
	}{
		{"", 1, eight, "0,4,1,5,2,6,3,7"},
		{"", 2, eight, "0,4,1,5 2,6,3,7"},
		{"", 3, eight, "0,4 1,5 2,6,3,7"},
		{"", 4, eight, "0,4 1,5 2,6 3,7"},
		{"", 8, eight, "0 4 1 5 2 6 3 7"},
		{"", 9, eight, ""},
		{"", 2, []int{3, 5}, "5 3"},
		{bindShare, 6, eight, "0 4 1,5 2 6 3,7"},
		{bindCore, 1, eight, "0,4"},
		{bindCore, 3, eight, "0,4 1,5 2,6"},
		{bindNUMA, 1, eight, "0,4,1,5"},
		{bindNUMA, 4, eight, "0,4,1,5 0,4,1,5 2,6,3,7 2,6,3,7"},
		{bindNUMA, 20, []int{1, 2}, strings.Repeat("1 ", 10) + strings.TrimSpace(strings.Repeat("2 ", 10))},
		{bindNone, 4, eight, ""},
	} {
		got, err := bind(c.binding, c.ranks, readProcessors(twoDomains(), c.allowed))
		if err != nil {
			t.Errorf("%q, %d ranks: %v", c.binding, c.ranks, err)
		}
		if text := boundText(got); text != c.want {
			t.Errorf("%q, %d ranks on %v: %q, want %q", c.binding, c.ranks, c.allowed, text, c.want)
		}
	}
	for binding, want := range map[string]string{
		bindShare: "--bind share: 9 ranks on 8 processors; start fewer, or leave them to the kernel with --bind none",
		bindCore:  "--bind core: 9 ranks on 4 cores; start fewer, or use --bind share or none",
	} {
		if _, err := bind(binding, 9, readProcessors(twoDomains(), eight)); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// boundText writes the processors of each rank in the order given.
func boundText(bound [][]int) string {
	var all []string
	for _, numbers := range bound {
		all = append(all, strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ","))
	}
	return strings.Join(all, " ")
}

// A system that tells nothing has one domain, and cores of one processor.
func TestBindWithoutTopology(t *testing.T) {
	for name, sys := range map[string]fstest.MapFS{
		"empty": {},
		"nonsense": {
			"devices/system/node/node0/cpulist":                        {Data: []byte("0-\n")},
			"devices/system/cpu/cpu1/topology/thread_siblings_list":    {Data: []byte("x,1\n")},
			"devices/system/cpu/cpu2/topology/thread_siblings_list":    {Data: []byte("2-1\n")},
			"devices/system/cpu/cpu3/topology/thread_siblings_list":    {Data: []byte("0-99999999\n")},
			"devices/system/cpu/cpu1000/topology/thread_siblings_list": {Data: []byte("1000\n")},
		},
	} {
		got, err := bind(bindShare, 4, readProcessors(sys, []int{0, 1, 2, 3}))
		if err != nil || boundText(got) != "0 1 2 3" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
