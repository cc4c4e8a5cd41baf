package levels_test

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
)

func ExampleParse() {
	for _, spec := range []string{"4x2", "a:2,b:1/rr", "2x2x4"} {
		t, err := levels.Parse(spec)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d ranks, levels", t, t.Size())
		for k := range t.Depth() {
			fmt.Printf(" %s", t.Level(k))
		}
		fmt.Printf("; rank 2 is in %s\n", t.DomainName(2, 0))
	}
	// Output:
	// 4x2: 8 ranks, levels s/node i/network; rank 2 is in node1
	// a:2,b:1/rr: 3 ranks, levels s/node i/network; rank 2 is in a
	// 2x2x4: 16 ranks, levels m/numa s/node i/network; rank 2 is in numa0
}

func ExampleParse_errors() {
	_, err := levels.Parse("4x0/random")
	fmt.Println(err)
	// Output:
	// topology "4x0/random": order "/random"; allowed are /block and /rr
	// dimension "0"; allowed are numbers from 1 to 1048576
}

func ExampleParseJSON() {
	t, err := levels.ParseJSON("machine.json", []byte(`{
		"levels": [{"name": "numa", "symbol": "m"},
		           {"name": "node", "symbol": "s"},
		           {"name": "network", "symbol": "i"}],
		"ranks": [["numa0", "a"], ["numa1", "a"], ["numa0", "b"]]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t)
	// Output: m/numa s/node i/network tree: a{numa0{0} numa1{1}} b{numa0{2}}
}

func ExampleNew() {
	t, err := levels.New(levels.Standard(2), [][]int32{{0}, {1}, {0}, {1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t)
	// Output: 2x2/rr
}

func ExampleNamed() {
	t, err := levels.Named(levels.Standard(2), [][]string{{"red"}, {"red"}, {"blue"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t)
	// Output: red:2,blue:1
}

func ExampleTopology_Sub() {
	t, err := levels.Parse("4x2")
	if err != nil {
		fmt.Println(err)
		return
	}
	sub, err := t.Sub([]levels.Rank{6, 7, 0})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sub)
	// Output: node3:2,node0:1
}

func ExampleTopology_Hierarchy() {
	t, err := levels.Parse("a:3,b:1,c:2")
	if err != nil {
		fmt.Println(err)
		return
	}
	h := t.Hierarchy(1)
	for k := range h.Depth() {
		for _, g := range h.Groups(k) {
			fmt.Printf("%s %v led by %d\n", h.Level(k), g.Ranks, g.Lead())
		}
	}
	// Output:
	// s/node [0 1 2] led by 1
	// s/node [3] led by 3
	// s/node [4 5] led by 4
	// i/network [1 3 4] led by 1
}

func ExampleTopology_Flat() {
	t, err := levels.Parse("2x2/rr")
	if err != nil {
		fmt.Println(err)
		return
	}
	h := t.Flat(3)
	fmt.Println(h.Depth(), h.Level(0), h.Group(0, 0).Ranks, h.Group(0, 0).Lead(), h.Ordered())
	// Output: 1 i/network [0 1 2 3] 3 true
}
