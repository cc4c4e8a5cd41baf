package viz_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/viz"
)

// aPath is a copy, a message, and a copy on its receiver.
var aPath = []viz.PathPiece{
	{Rank: 0, Task: "sr#0", Label: "sr#0 copy r0 1KiB", Level: 's', Cause: "copying", Begin: 0, End: 100},
	{Rank: 2, Task: "ib#0", Label: "ib#0 recv r0>r2 1KiB", Level: 'i', Cause: "sending", Begin: 100, End: 600},
	{Rank: 2, Task: "ib#0", Label: "ib#0 recv r0>r2 1KiB", Level: 'i', Cause: "latency", Begin: 600, End: 900},
	{Rank: 2, Task: "sb#0", Label: "sb#0 copy r2 1KiB", Level: 's', Cause: "copying", Begin: 900, End: 1000},
}

func TestPathText(t *testing.T) {
	for _, test := range []struct {
		most int
		want string
	}{
		{0, `0s     100ns  rank 0  sr#0 copy r0 1KiB     copying 100ns
100ns  800ns  rank 2  ib#0 recv r0>r2 1KiB  sending 500ns, latency 300ns
900ns  100ns  rank 2  sb#0 copy r2 1KiB     copying 100ns
`},
		{1, `100ns  800ns  rank 2  ib#0 recv r0>r2 1KiB  sending 500ns, latency 300ns
and 2 more, 200ns together
`},
	} {
		if got := string(viz.PathText(aPath, test.most)); got != test.want {
			t.Errorf("at most %d:\n%swant\n%s", test.most, got, test.want)
		}
	}
	if got := string(viz.PathText(nil, 3)); got != "no critical path\n" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestPathShares(t *testing.T) {
	want := `     all     copying  latency  sending
sr   10.0%   10.0%
ib   80.0%            30.0%    50.0%
sb   10.0%   10.0%
all  100.0%  20.0%    30.0%    50.0%
`
	if got := string(viz.PathShares(aPath)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestPathInPerfetto(t *testing.T) {
	text := string(viz.Perfetto(nil, aPath...))
	for _, want := range []string{`"critical path"`, `"name":"ib#0 recv r0>r2 1KiB"`, `"cause":"latency"`, `"ts":0.600,"dur":0.300`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
