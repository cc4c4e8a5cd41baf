package tasks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels"
)

// A scan's segments go up as scans and exclusive scans and come down as prefixes.
func TestScanIsARecipe(t *testing.T) {
	for _, tc := range []struct {
		topo string
		coll Collective
		want string
	}{
		{"2x2x2", Scan, "mx sex iex sp mp"},
		{"4x2", Scan, "sx iex sp"},
		{"2x2x2", Exscan, "mex sex iex sp mp"},
		{"4x2", Exscan, "sex iex sp"},
		{"4x1", Scan, "ix"},
		{"1x4", Scan, "sx"},
		{"1x4", Exscan, "sex"},
		{"1x1", Scan, "ix"},
		{"1x1", Exscan, ""},
	} {
		var kinds []string
		for _, ph := range pipeline(scanOf(tc.coll), parsed(t, tc.topo).Trailing(), Han) {
			kinds = append(kinds, ph.Kind.String())
		}
		if got := strings.Join(kinds, " "); got != tc.want {
			t.Errorf("%v on %s: %q, want %q", tc.coll, tc.topo, got, tc.want)
		}
	}
}

// The last rank of a group leads it, and keeps what comes before the group beside its
// result; of an exscan the group's total too. Other ranks keep nothing. Nothing comes
// before the first group: it has no prefix task.
func TestScanKeepsPrefixes(t *testing.T) {
	for _, tc := range []struct {
		coll  Collective
		topo  string
		rank  levels.Rank
		kinds string
		bytes int64
	}{
		{Scan, "2x2", 0, "sx#0 recv", 0},
		{Scan, "2x2", 1, "sx#0 recv iex#0 scratch", 64},
		{Scan, "2x2", 2, "sx#0 recv sp#0 recv", 0},
		{Scan, "2x2", 3, "sx#0 recv iex#0 scratch sp#0 scratch", 64},
		{Scan, "a:1,b:2", 0, "iex#0 recv", 0},
		{Scan, "2x2x2", 7, "mx#0 recv sex#0 scratch iex#0 scratch sp#0 scratch mp#0 scratch", 128},
		{Scan, "2x2x2", 5, "mx#0 recv sex#0 scratch sp#0 recv mp#0 scratch", 64},
		{Exscan, "2x2", 0, "sex#0 recv", 0},
		{Exscan, "2x2", 1, "sex#0 recv iex#0 scratch", 128},
		{Exscan, "2x2", 2, "sex#0 recv sp#0 recv", 0},
		{Exscan, "2x2", 3, "sex#0 recv iex#0 scratch sp#0 recv", 128},
		{Exscan, "a:1,b:2", 0, "iex#0 recv", 0},
		{Exscan, "2x2x2", 7, "mex#0 recv sex#0 scratch iex#0 scratch sp#0 scratch mp#0 recv", 192},
	} {
		g, err := Expand(scanOf(tc.coll), parsed(t, tc.topo), Plan{Shape: Han, Segment: 20, Window: 1}, tc.rank)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, task := range g.Nodes() {
			to := ""
			if task.Dst.Region != 0 {
				to = task.Dst.Region.String()
			}
			kinds = append(kinds, fmt.Sprintf("%v %s", task, to))
		}
		if got := strings.Join(kinds, " "); got != tc.kinds || g.Partial != tc.bytes {
			t.Errorf("%v on %s: rank %d has %q and keeps %d bytes, want %q and %d", tc.coll, tc.topo, tc.rank, got, g.Partial, tc.kinds, tc.bytes)
		}
	}
}

// A scan's segments lie side by side in the buffers, whatever the size of an element, and what it keeps in scratch does too.
func TestScanSegments(t *testing.T) {
	for _, tc := range []struct {
		coll  Collective
		topo  string
		shape Shape
		bytes int64
		rank  levels.Rank
		want  string
	}{
		{Scan, "4", Flat, 8, 1, "send[0:8] recv[0:8] send[8:16] recv[8:16] send[16:20] recv[16:20]"},
		{
			Exscan, "2x2x2", Han, 20, 7,
			"send[0:20] recv[0:20] scratch[128:148] scratch[0:20] scratch[128:148] scratch[64:84] scratch[64:84] scratch[0:20] scratch[0:20] recv[0:20]",
		},
	} {
		g, err := Expand(scanOf(tc.coll), parsed(t, tc.topo), Plan{Shape: tc.shape, Segment: tc.bytes, Window: 1}, tc.rank)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range g.Nodes() {
			got = append(got, fmt.Sprint(g.Nodes()[i].Src, g.Nodes()[i].Dst))
		}
		if text := strings.Join(got, " "); text != tc.want {
			t.Errorf("%v on %s: %s, want %s", tc.coll, tc.topo, text, tc.want)
		}
	}
}

// Levels need ranks that are numbered node by node; order=tree one order for all layouts.
func TestScanPlansThatCantBe(t *testing.T) {
	for _, tc := range []struct{ topo, plan, want string }{
		{"2x2/rr", "shape=han", "a scan with shape=han needs ranks that are numbered node by node; shape=flat works on any layout"},
		{"2x2", "shape=han,order=tree", "shape=flat keeps the same on any layout"},
		{"2x2", "shape=ar", "the shapes of scan are flat, han, han-lockstep"},
		{"2x2/rr", "shape=flat,order=tree", "<nil>"},
	} {
		p, err := ParsePlan(tc.plan)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = Hierarchy(scanOf(Scan), parsed(t, tc.topo), p); !strings.Contains(fmt.Sprint(err), tc.want) {
			t.Errorf("%s on %s: error %v, want %q", tc.plan, tc.topo, err, tc.want)
		}
	}
}

// scanOf is a request of 20 bytes.
func scanOf(c Collective) Request { return Request{Coll: c, Count: 10, Type: Int16, Op: Sum} }

func parsed(t *testing.T, spec string) *levels.Topology {
	t.Helper()
	topo, err := levels.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}
