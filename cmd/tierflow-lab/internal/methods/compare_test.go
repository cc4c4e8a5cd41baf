package methods

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

// On a simulated machine tables from tasks cost a small part of exhaustive search, and
// choose nearly as well. Times are simulated, so they are the same everywhere.
func TestTuneCompareSimulated(t *testing.T) {
	c := kittest.Decode[comparison](t, lab.Succeeds(t, "compare", "--json", "--simulate", "assumed", "--topo", "4x2", "--ops", "bcast",
		"--shapes", "flat,han", "--submodules", "adapt,sm", "--segments", "30KiB,128KiB,all", "--windows", "8", "--inner", "0", "--max", "1MiB"))
	exhaustive := c.Methods[0].TuningS
	for i, most := range map[int]struct{ share, worst float64 }{2: {0.1, 1.1}, 3: {0.1, 1.15}, 4: {0.1, 1.15}, 5: {0.1, 1.15}} {
		if m := c.Methods[i]; !(exhaustive > 0) || m.TuningS > most.share*exhaustive || m.MaxSlowdown > most.worst {
			t.Errorf("%s: %.2f of %.2f s, worst slowdown %.3f; at most %+v", m.Method, m.TuningS, exhaustive, m.MaxSlowdown, most)
		}
	}
	if all := c.Methods[3].Spent; len(all) != 2 || all[1].Measurements > 3*len(c.Points) {
		t.Errorf("predicted, each choice once beside the rule's: %+v", all)
	}
	if all := c.Methods[3].Reuse; all.Tasks == 0 || all.Measured < all.Tasks || c.Methods[0].Reuse.Tasks > 0 {
		t.Errorf("tasks of a prediction %+v, of exhaustive search %+v", all, c.Methods[0].Reuse)
	}
}

func TestTuneCompare(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "compare.svg")
	c := kittest.Decode[comparison](t, lab.Succeeds(t, smallSpace("compare", "--ops", "bcast", "--min", "4KiB", "--json", "--svg", svg)...))
	last := len(c.Methods) - 1
	if last != len(contests)-1 || c.Methods[last].Method != "rule" || c.Methods[last].Measurements != 0 || len(c.Points) != 3 {
		t.Fatalf("%+v", c)
	}
	for i, m := range c.Methods {
		made := 0
		for _, on := range m.Spent {
			made += on.Measurements
		}
		if made != m.Measurements || (i == last) != (len(m.Spent) == 0) {
			t.Errorf("%s: spent on %+v, of %d measurements", m.Method, m.Spent, m.Measurements)
		}
		if i < last && (m.Method != contests[i].name() || m.Configurations == 0) || m.Measurements != m.Planned || len(m.Choices) != 3 || m.MeanSlowdown <= 0 || m.MaxSlowdown < m.MeanSlowdown {
			t.Errorf("%+v", m)
		}
		for _, choice := range m.Choices {
			if choice.Tie && choice.Slowdown != 1 || choice.NS < choice.Low || choice.NS > choice.High {
				t.Errorf("%+v", choice)
			}
		}
	}
	if !strings.Contains(kittest.Contents(t, svg), "exhaustive+heuristics") {
		t.Error("the drawing does not name the methods")
	}
	text := lab.Succeeds(t, smallSpace("compare", "--ops", "bcast", "--min", "64KiB", "--budget", "1ns")...)
	if !strings.Contains(text, "mean slowdown") {
		t.Errorf("without a budget to speak of:\n%s", text)
	}
}

// Whoever interrupts a comparison sees what was done until then.
func TestTuneCompareInterrupted(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	s := lab.RunIn(interrupted, t, smallSpace("compare", "--ops", "bcast", "--min", "64KiB", "--json")...)
	if s.Status != 1 || !strings.Contains(s.Errors, "interrupted: of 1 points 0 are compared") {
		t.Fatalf("status %d, %s", s.Status, s.Errors)
	}
	if c := kittest.Decode[comparison](t, s.Out); !c.Interrupted || len(c.Methods) == 0 || c.Methods[0].Measurements != 0 {
		t.Errorf("%+v", c)
	}
}

func TestTuneValidate(t *testing.T) {
	var v struct{ Validations []validation }
	svg := filepath.Join(t.TempDir(), "validate.svg")
	text := lab.Succeeds(t, fewPlans("validate", "--ops", "bcast", "--bytes", "64KiB", "--json", "--svg", svg)...)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Validations) != 1 || len(v.Validations[0].Rows) < 3 || math.Abs(v.Validations[0].Spearman) > 1 {
		t.Errorf("%+v", v)
	}
	for i, row := range v.Validations[0].Rows {
		if row.Predicted <= 0 || row.Alone <= 0 || row.Measured <= 0 || i > 0 && row.Measured < v.Validations[0].Rows[i-1].Measured {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	if _, err := os.Stat(svg); err != nil {
		t.Error(err)
	}
}

// Methods can be named, and have budgets of their own. The first is what others are compared with.
func TestCompareNamedMethods(t *testing.T) {
	args := smallSpace("compare", "--ops", "bcast", "--min", "64KiB", "--json")
	c := kittest.Decode[comparison](t, lab.Succeeds(t, append(args, "--methods", "exhaustive,learn=30s")...))
	if len(c.Methods) != 3 || c.Methods[0].Method != "exhaustive" || c.Methods[1].Method != "learn" || c.Methods[1].Measurements == 0 || c.Methods[2].Method != "rule" {
		t.Errorf("%+v", c.Methods)
	}
	for text, want := range map[string]string{
		"learn,exhaustive":     "--methods learn,exhaustive: the first is exhaustive",
		"exhaustive,luck":      "--methods luck: allowed are exhaustive; exhaustive+heuristics",
		"exhaustive,learn=30":  `--methods learn=30: "30"; allowed are times above 0`,
		"exhaustive,learn=-3s": `--methods learn=-3s: "-3s"; allowed are times above 0`,
	} {
		if s := lab.Run(t, append(args, "--methods", text)...); s.Status != 2 || !strings.Contains(s.Errors, want) {
			t.Errorf("%s: status %d, %s", text, s.Status, s.Errors)
		}
	}
	all, err := parseContests([]string{"exhaustive", "learn=30s"}, time.Minute)
	if err != nil || len(all) != 2 || all[0].budget != time.Minute || all[1].budget != 30*time.Second {
		t.Errorf("%+v, %v", all, err)
	}
}
