package drawn

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/submodules/all"
)

// lab is the command with what is in this package.
var lab = kittest.Of("tierflow-lab", Command)

// Cells are what the help says, and the same for the same seed.
func TestDraw(t *testing.T) {
	seen := map[string]bool{}
	for n := range uint64(200) {
		c, err := draw(3, n, false)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := draw(3, n, false)
		a, err := c.machine.Format()
		b, _ := again.machine.Format()
		if err != nil || string(a) != string(b) || c.topo != again.topo {
			t.Fatalf("cell %d differs when it is drawn again, %v", n, err)
		}
		wire, err := c.machine.Link(c.on.Level(c.on.Depth() - 1))
		rate, bytes, each := 8/wire.Byte, c.request.Bytes(), c.on.Size()/c.on.Nodes()
		if err != nil || rate < 0.1 || rate > 400 || wire.Latency < 700 || wire.Latency > 60e3 || c.machine.CopyByte < 0.03 || c.machine.CopyByte > 0.3 ||
			c.on.Nodes() < 2 || c.on.Nodes() > 64 || each < 1 || each > 16 || bytes < 64 || bytes > 16<<20 {
			t.Errorf("cell %d: %s, %d bytes, %.2f Gbit/s, %+v, %v", n, c.topo, bytes, rate, wire, err)
		}
		seen[c.request.Coll.String()] = true
	}
	if len(seen) != len(collectives) {
		t.Errorf("200 cells have the collectives %v", seen)
	}
}

// No plan is better than the best one, which is one of the catalogue.
func TestJudge(t *testing.T) {
	cells := kittest.Decode[[]verdict](t, lab.Succeeds(t, "drawn", "--seed", "5", "--cells", "2", "--steps", "600", "--json"))
	if len(cells) != 2 {
		t.Fatalf("%d cells, want 2", len(cells))
	}
	for _, v := range cells {
		if v.Chosen.Ratio < 1 || v.Rule.Ratio < 1 || v.Plans < 2 || math.Abs(v.Chosen.NS/v.Best.NS-v.Chosen.Ratio) > 1e-9 {
			t.Errorf("%+v", v)
		}
		text := lab.Succeeds(t, "drawn", "--seed", "5", "--show", strconv.FormatUint(v.Cell, 10))
		if _, err := machine.Parse("shown", []byte(text)); err != nil {
			t.Error(err)
		}
	}
}

func TestSummary(t *testing.T) {
	all := []verdict{{Chosen: outcome{Ratio: 1}, Rule: outcome{Ratio: 3}}, {Chosen: outcome{Ratio: 1.5}, Rule: outcome{Ratio: 1}}}
	if got, want := summarize(all, func(v *verdict) float64 { return v.Chosen.Ratio }), (summary{1.25, 1.5, 0.5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var text strings.Builder
	(&drawing{seed: 9}).print(&text, all, 4)
	for _, want := range []string{"2 cells of seed 9; 4 passed over", "--seed 9 --show 0 > 0.json"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for _, line := range []string{"--cells 0", "--steps 0", "--show -1"} {
		if s := lab.Run(t, append([]string{"drawn"}, strings.Fields(line)...)...); s.Status != 2 || s.Out != "" {
			t.Errorf("%s: status %d, output %q", line, s.Status, s.Out)
		}
	}
}

// Nodes of different sizes are drawn if that is asked for, on the same machines.
func TestUnequal(t *testing.T) {
	isUnequal := false
	for n := range uint64(20) {
		a, err := draw(3, n, true)
		b, err2 := draw(3, n, false)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		one, _ := a.machine.Format()
		other, _ := b.machine.Format()
		if string(one) != string(other) || a.on.Nodes() != b.on.Nodes() {
			t.Errorf("cell %d is on another machine, or has %d nodes in place of %d", n, a.on.Nodes(), b.on.Nodes())
		}
		isUnequal = isUnequal || a.on.Size()%a.on.Nodes() != 0
	}
	if !isUnequal {
		t.Error("20 cells have nodes of the same size")
	}
}

// A cell whose chosen plan has too many steps is left to the caller, and an interrupt ends one.
func TestJudgeEnds(t *testing.T) {
	c, err := draw(5, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	j := &judging{reg: all.Submodules(), steps: 1}
	if v, err := j.judge(t.Context(), c); !errors.Is(err, errLarge) {
		t.Errorf("with a step at most: %+v, %v", v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j.steps = 1 << 40
	if v, err := j.judge(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %+v, %v", v, err)
	}
}

func TestTidy(t *testing.T) {
	for x, want := range map[float64]float64{0.123456: 0.123, 98.76: 98.8, 99999: 100000, 3: 3} {
		if got := tidy(x); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%v: %v, want %v", x, got, want)
		}
	}
}
