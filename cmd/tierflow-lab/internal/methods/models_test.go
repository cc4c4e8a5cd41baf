package methods

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

// On simulated nodes the models choose hardly worse than the best of six (table 3 of the
// paper has 3 and 10 percent).
func TestModelsCompare(t *testing.T) {
	m := kittest.Decode[modelled](t, lab.Succeeds(t, strings.Fields("models --compare --json --topo 16x1 --simulate assumed --bytes 8KiB:512KiB:x8")...))
	if len(m.Algorithms) != 6 || len(m.Gamma) != 7 || m.Gamma[0] != 1 || len(m.Choices.Rows) != 3 {
		t.Errorf("%+v", m)
	}
	if c := m.Choices.Model; c.Mean < 1 || c.Mean > 1.03 || c.Max > 1.1 {
		t.Errorf("the models' choices take %+v times as long as the best", c)
	}
	for _, r := range m.Choices.Rows {
		for _, one := range r.Measured {
			if one.Modelled < 0.7*one.NS || one.Modelled > 1.3*one.NS {
				t.Errorf("%d bytes by %s: modelled %.0f ns, simulated %.0f", r.Bytes, one.Algorithm, one.Modelled, one.NS)
			}
		}
	}
}

// Models are estimated on ranks, too.
func TestModelsOnRanks(t *testing.T) {
	text := lab.Succeeds(t, strings.Fields("models --compare --topo 3x1 --link none --bytes 8KiB,32KiB --time 1ms")...)
	for _, want := range []string{"γ(P)", "splitbinary", "built-in rule (%)", "mean of ratios"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestModelsWrongArguments(t *testing.T) {
	lab.RefusesAll(t, "", map[string]string{
		"models --topo 4x2 --simulate assumed": "models are of one rank on each node, or of the ranks of one node; 4x2 has 8 ranks on 4 nodes",
		"models --bytes 64,4KiB":               "the largest is 4KiB; experiments need 8KiB, a piece, or more",
		"models --bytes x":                     "--bytes",
		"models --time 0s":                     "--time 0s",
		"models --simulate nosuch.json":        "--simulate: open nosuch.json",
	})
}

// The recordings hold what their README says: choices that take 1.03 times as long as the best of
// six in the mean, 1.11 at most.
func TestRecordedModels(t *testing.T) {
	for _, name := range []string{"16x1", "90x1", "124x1"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "testdata", "models", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		m := kittest.Decode[modelled](t, string(data))
		if m.Topology != name || len(m.Choices.Rows) != 10 || m.Seconds > 60 {
			t.Errorf("%s: %s, %d sizes, experiments of %.0f s", name, m.Topology, len(m.Choices.Rows), m.Seconds)
		}
		mean := meanOf(m.Choices.Rows, func(r *choiceRow) chosen { return r.Model })
		if mean != m.Choices.Model || mean.Mean > 1.03 || mean.Max > 1.11 {
			t.Errorf("%s: %+v, by its rows %+v", name, m.Choices.Model, mean)
		}
		for _, r := range m.Choices.Rows {
			for _, one := range r.Measured {
				if one.NS < r.NS {
					t.Errorf("%s, %d bytes: %s is faster than the best", name, r.Bytes, one.Algorithm)
				}
			}
		}
	}
}
