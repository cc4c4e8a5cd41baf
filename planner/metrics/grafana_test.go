package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The board shows metrics that there are, by expressions that Prometheus can read.
func TestGrafana(t *testing.T) {
	text, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: board\n  rules:\n")
	for _, panel := range board.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(`tierflow_[a-z_]+`).FindAllString(target.Expr, -1) {
				of, _, _ := strings.Cut(strings.NewReplacer("_bucket", " ", "_sum", " ", "_count", " ").Replace(name), " ")
				isHistogram := slices.ContainsFunc(histograms, func(h histogram) bool { return h.name == of && h.name != name })
				if !isHistogram && !slices.ContainsFunc(families, func(f family) bool { return f.name == name }) {
					t.Errorf("panel %q has %s, which is no metric", panel.Title, name)
				}
			}
			expr := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(target.Expr)
			fmt.Fprintf(&rules, "  - record: board:expression\n    expr: %q\n    labels: {n: %q}\n", expr, fmt.Sprint(rules.Len()))
		}
	}
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIPPED: no promtool reads the expressions")
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s\n%s", err, out, rules.String())
	}
}
