package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	meter "github.com/tierflow/tierflow/costs/measure"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

// The machine that is written is one that a simulation takes.
func TestP2P(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine.json")
	args := []string{"bench", "p2p", "--topo", "2x2", "--bytes", "1,10000", "--time", "1ms", "--machine", file}
	text := tierflow.Succeeds(t, args...)
	for _, want := range []string{"level s, turns, 1 pair", "level i, both ways, 1 pair", "level i, one way, 2 pairs", "i.latency_ns", "copy_byte_ns"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := machine.Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	if m.Cores.InAll == 0 || len(m.Links) != 2 || m.Provenance.Method != "measured between pairs of ranks" || m.Provenance.Date == "" {
		t.Errorf("%+v", m)
	}
	tierflow.Succeeds(t, "bench", "coll", "allreduce", "--topo", "8x2", "--bytes", "64KiB", "--simulate", file)
}

func TestP2POutputs(t *testing.T) {
	args := []string{"bench", "p2p", "--topo", "2", "--bytes", "64", "--time", "1ms"}
	found := kittest.Decode[meter.Found](t, tierflow.Run(t, append(args, "--json")...).Out)
	if len(found.Curves) != 3 || found.Curves[0].Way != meter.Turns || found.Machine.Cores.PerNode == 0 {
		t.Errorf("%+v", found)
	}
	if _, err := machine.Parse("stdout", []byte(tierflow.Run(t, append(args, "--machine", "-")...).Out)); err != nil {
		t.Error(err)
	}
}

func TestP2PRefusals(t *testing.T) {
	if s := tierflow.Run(t, strings.Fields("bench p2p --time 1ms --bytes 8 --topo 2 --machine /nowhere/m.json")...); s.Status == 0 || !strings.Contains(s.Errors, "/nowhere") {
		t.Errorf("%+v, want that there is no folder /nowhere", s)
	}
	tierflow.RefusesAll(t, "bench p2p --time 1ms --bytes 8", map[string]string{
		"--bytes 0":          "a message of 0B; allowed are 1B to 64MiB",
		"--bytes 1GiB":       "a message of 1GiB; allowed are 1B to 64MiB",
		"--time 0s":          "--time 0s: must be above 0",
		"--topo 1":           "one rank: a message is between two",
		"--json --machine -": "standard output has room for one",
		"extra":              "there are only flags",
	})
}

// The worst point of a machine that doesn't fit is named.
func TestMisfit(t *testing.T) {
	curve := func(level machine.Symbol, modelled ...float64) meter.Curve {
		c := meter.Curve{Level: level, Way: meter.Turns}
		for _, ns := range modelled {
			c.Points = append(c.Points, meter.Point{Bytes: 64, NS: 1000, Modelled: ns})
		}
		return c
	}
	if got := misfit([]meter.Curve{curve('s', 1100, 600), curve('i', 1900)}); got != "" {
		t.Errorf("numbers within twice: %s", got)
	}
	const want = "warning: the machine's numbers don't fit: level i, turns, 64B take 1.00 µs, modelled 0.10; "
	if got := misfit([]meter.Curve{curve('s', 4000), curve('i', 1000, 100)}); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}
