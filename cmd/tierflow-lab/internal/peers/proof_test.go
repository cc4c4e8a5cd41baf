package peers

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/planner/rules"
)

// A rule is proven in a cell in which it was faster in all turns. Who begins alternates.
func TestUnproven(t *testing.T) {
	by := setting{library: mpich, variant: byRules}
	c := cells{[]string{"bcast", "reduce"}, []int64{8, 1024}}
	var order string
	turn := 0
	run := func(s setting, c cells, _ time.Duration) (rows []peerRow, err error) {
		order += s.variant[:1]
		turn = (len(order) - 1) / 2
		for _, op := range c.ops {
			for _, n := range c.bytes {
				row := peerRow{Collective: op, Bytes: n, P50: 10 + float64(turn)}
				if s.variant == byRules && (op == "bcast" && n == 8 || op == "reduce" && n == 1024 && turn != 3) {
					row.P50--
				}
				rows = append(rows, row)
			}
		}
		return rows, nil
	}
	lost, err := unproven(by, c, time.Millisecond, io.Discard, run)
	if want := []cell{{"bcast", 1024}, {"reduce", 8}, {"reduce", 1024}}; err != nil || !cmp.Equal(want, lost, cmp.AllowUnexported(cell{})) {
		t.Errorf("%v, %v; want %v", lost, err, want)
	}
	if want := "drrddrrddr"; order != want {
		t.Errorf("turns %s, want %s", order, want)
	}
	ends := errors.New("interrupted")
	if _, err := unproven(by, c, 0, io.Discard, func(setting, cells, time.Duration) ([]peerRow, error) { return nil, ends }); !errors.Is(err, ends) {
		t.Errorf("%v, want what ends all", err)
	}
	jobs := 0
	lost, err = unproven(by, c, 0, io.Discard, func(setting, cells, time.Duration) ([]peerRow, error) { jobs++; return nil, nil })
	if err != nil || len(lost) != 4 || jobs != 2 {
		t.Errorf("nothing was measured in %d jobs, and %v are unproven, %v; want all after one turn", jobs, lost, err)
	}
}

// Cells that are left out reach half the way to the next sizes, and are rules that can be read.
func TestLeaveOut(t *testing.T) {
	sizes := []int64{4096, 8, 1024}
	for _, c := range []struct {
		lost  []cell
		sizes []int64
		want  string
	}{
		{nil, sizes, ""},
		{[]cell{{"bcast", 8}}, sizes, "bcast: if bytes <= 516B then default\n"},
		{[]cell{{"bcast", 1024}, {"reduce", 4096}}, sizes, "bcast: if bytes > 516B and bytes <= 2560B then default\nreduce: if bytes > 2560B then default\n"},
		{[]cell{{"bcast", 8}}, []int64{8}, "bcast: default\n"},
	} {
		got := leaveOut(c.lost, c.sizes)
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.lost, got, c.want)
		}
		if _, err := rules.Parse("left out", got+"bcast: if bytes <= 8KiB then shape=flat,ib=adapt/binomial"); err != nil {
			t.Error(err)
		}
	}
}
