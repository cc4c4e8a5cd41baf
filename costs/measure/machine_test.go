package measure_test

import (
	"context"
	"math"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// On a simulated machine the numbers that were put in come out.
func TestMachineIsFoundAgain(t *testing.T) {
	for _, topo := range []string{"2x1", "3x4", "2x2x2"} {
		on := tasktest.Topology(t, topo)
		want := machine.Assumed()
		want.MemoryByte, want.Step = 0, 40
		want.Links[1].BurstBytes, want.Links[1].SendMore = 20_000, 500
		want.PeerCopy, want.PeerByte = 700, 0.03
		i := want.Links[1]
		found, err := measure.NewSimulated(on, want, all.Submodules()).Machine(t.Context(), measure.Setup{Frame: i}, []int64{1, 5000, 1 << 20}, stats.Stop{})
		if err != nil {
			t.Fatal(err)
		}
		got := found.Machine
		near := func(what string, got, want, within float64) {
			if math.Abs(got-want) > within*want {
				t.Errorf("%s: %s is %v, want %v", topo, what, got, want)
			}
		}
		near("copy", got.CopyByte, want.CopyByte, 0.01)
		near("reduce", got.ReduceByte, want.ReduceByte, 0.01)
		if topo != "2x1" { // whose nodes have one rank
			near("peer copy", got.PeerCopy, want.PeerCopy, 0.01)
			near("peer byte", got.PeerByte, want.PeerByte, 0.01)
		}
		near("step", got.Step, want.Step, 0.01)
		for _, l := range got.Links {
			as := want.Links[0]
			if l.Level == 'i' {
				as = i
				near("send more", l.SendMore, as.SendMore, 0.2) // refunds go too
				near("recv", l.Recv, as.Recv, 0.15)
				near("byte", l.Byte, as.Byte, 0.01)
				near("burst", float64(l.BurstBytes), float64(as.BurstBytes), 0.1)
				near("buffer", float64(l.BufferBytes), float64(as.BufferBytes), 0.05)
			}
			near("send", l.Send, as.Send, 0.05)
			near("latency and recv", l.Latency+l.Recv, as.Latency+as.Recv, 0.05)
			near("send byte", l.SendByte, as.SendByte, 0.05)
		}
		if want := min(on.Depth(), 3); len(got.Links) != want && topo != "2x1" {
			t.Errorf("%s: %d links, want %d", topo, len(got.Links), want)
		}
		for _, c := range found.Curves {
			for _, p := range c.Points {
				near(c.Way.String()+" modelled", p.Modelled, p.NS, 0.35) // small ones depend on what recv is
			}
		}
	}
}

// Goroutine ranks measure each other, and all get the same machine.
func TestMachineOfGoroutines(t *testing.T) {
	found := onRanks(t, "2x2", func(ctx context.Context, b *measure.Bench) (*measure.Found, error) {
		return b.Machine(ctx, measure.Setup{}, []int64{1, 10_000}, brief)
	})
	if len(found.Curves) != 9 || len(found.Machine.Links) != 2 {
		t.Errorf("%d curves, %d links", len(found.Curves), len(found.Machine.Links))
	}
	for _, c := range found.Curves {
		for _, p := range c.Points {
			if p.NS <= 0 || p.Modelled <= 0 || p.Rate <= 0 || p.OldRate != p.Rate || p.Sample.N != 3 {
				t.Errorf("level %c, %v: %+v", c.Level, c.Way, p)
			}
		}
	}
	if _, err := found.Machine.Format(); err != nil {
		t.Error(err)
	}
}
