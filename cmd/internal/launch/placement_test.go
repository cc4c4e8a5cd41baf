package launch

import (
	"fmt"
	"strings"
	"testing"
)

func TestPlace(t *testing.T) {
	nodes := []node{{"a", 2}, {"b", 1}, {"c", 3}}
	for _, test := range []struct {
		ranks   int
		mapping string
		over    bool
		want    string
	}{
		{0, mapBlock, false, "[[0 1] [2] [3 4 5]]"},
		{6, mapRoundRobin, false, "[[0 3] [1] [2 4 5]]"},
		{3, mapBlock, false, "[[0 1] [2] []]"},
		{2, mapRoundRobin, false, "[[0] [1] []]"},
		{8, mapBlock, true, "[[0 1 2 3] [4] [5 6 7]]"},
		{8, mapRoundRobin, true, "[[0 3 6] [1 7] [2 4 5]]"},
	} {
		got, err := place(nodes, test.ranks, test.mapping, test.over)
		if err != nil || fmt.Sprint(got) != test.want {
			t.Errorf("%+v: %v, %v", test, got, err)
		}
	}
	_, err := place(nodes, 8, mapBlock, false)
	if err == nil || !strings.Contains(err.Error(), "8 ranks on 6 slots") {
		t.Errorf("error %v does not say both numbers", err)
	}
}

// Very many ranks on this machine are said to start.
func TestCrowdText(t *testing.T) {
	for ranks, want := range map[int]string{1: "", 128: "", 129: "starting 129 ranks on 2 processors of this machine; interrupt to stop that"} {
		if got := crowdText(ranks, 2); got != want {
			t.Errorf("%d ranks: %q, want %q", ranks, got, want)
		}
	}
}
