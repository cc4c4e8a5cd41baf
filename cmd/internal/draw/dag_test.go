package draw

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

// tierflow is the command with what is in this package.
var tierflow = kittest.Of("tierflow", DagCommand, TraceCommand)

func TestDag(t *testing.T) {
	for name, line := range map[string]string{
		"dag_leader.txt":   "dag allreduce --topo 2x2 --bytes 128KiB --plan shape=han,fs=64KiB",
		"dag_member.txt":   "dag allreduce --topo 2x2 --bytes 128KiB --plan shape=han,fs=64KiB --role member",
		"dag_steps.txt":    "dag bcast --topo 2x2 --bytes 4KiB --steps --all --root 3",
		"dag_stages.json":  "dag allreduce --topo 2x2 --bytes 256KiB --plan shape=han,fs=64KiB --stages --format json",
		"dag_stages.txt":   "dag allreduce --topo 2x2 --bytes 256KiB --plan shape=han,fs=64KiB --stages",
		"dag_all.dot":      "dag allreduce --topo 2x2 --bytes 192KiB --plan shape=han,fs=64KiB,w=2 --all --reduce --segments 1..2 --format dot",
		"dag_passes.txt":   "dag bcast --topo 2x1 --bytes 1GiB --plan shape=han,fs=64KiB --segments 1023",
		"dag_rsag.txt":     "dag allreduce --topo 2x2 --bytes 128KiB --plan shape=rsag,fs=64KiB",
		"dag_lanes.txt":    "dag allreduce --topo 2x2 --bytes 128KiB --plan shape=lanes,fs=64KiB --rank 3",
		"dag_sag.txt":      "dag bcast --topo 2x2 --bytes 128KiB --plan shape=sag,fs=64KiB",
		"dag_scatters.txt": "dag reducescatter --topo 2x2 --counts 1000,0,3000,1000 --plan shape=han,fs=8KiB",
		"dag_critical.txt": "dag bcast --topo 4x1 --bytes 64KiB --plan shape=han,fs=32KiB,i=adapt/binomial --steps --all --simulate assumed",
		"dag_exchange.txt": "dag allreduce --topo 4x1 --bytes 256KiB --all --simulate assumed",
		"dag_critical.dot": "dag bcast --topo 4x1 --bytes 64KiB --plan shape=han,fs=32KiB,i=adapt/binomial --all --simulate assumed --format dot",
		"dag_barrier.txt":  "dag barrier --topo 2x2 --steps --rank 2",
	} {
		t.Run(name, func(t *testing.T) {
			kittest.CheckGolden(t, name, tierflow.Succeeds(t, strings.Fields(line)...))
		})
	}
	if text := tierflow.Succeeds(t, "dag", "allreduce", "--topo", "2x2", "--format", "json"); !json.Valid([]byte(text)) {
		t.Errorf("--format json prints %s", text)
	}
}

// The name of the file chooses the format.
func TestDagWritesFiles(t *testing.T) {
	folder := t.TempDir()
	begins := map[string]string{"a.dot": "digraph {", "a.json": `{"title"`, "a.txt": "allreduce ", "a": "allreduce "}
	if _, err := exec.LookPath("dot"); err == nil {
		begins["a.svg"] = "<?xml"
	} else {
		t.Log("no Graphviz here: SVG is not tried")
	}
	for name, begin := range begins {
		file := filepath.Join(folder, name)
		if out := tierflow.Succeeds(t, "dag", "allreduce", "--topo", "2x2", "-o", file); out != "" {
			t.Errorf("with -o %s there is output %q", name, out)
		}
		text := kittest.Contents(t, file)
		if !strings.HasPrefix(text, begin) {
			t.Errorf("%s begins with %.20q, want %q", name, text, begin)
		}
		if name == "a.svg" {
			var svg struct{ XMLName xml.Name }
			if err := xml.Unmarshal([]byte(text), &svg); err != nil || svg.XMLName.Local != "svg" {
				t.Errorf("%s: %v, root element %q", name, err, svg.XMLName.Local)
			}
		}
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != len(begins) {
		t.Errorf("files %v, %v; want %d", left, err, len(begins))
	}
}

func TestDagWithoutGraphviz(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	for _, format := range []string{"svg", "png"} {
		s := tierflow.Run(t, "dag", "allreduce", "-o", filepath.Join(folder, "a."+format))
		if s.Status != 1 || !strings.Contains(s.Errors, format+" is drawn by Graphviz") || !strings.Contains(s.Errors, "install Graphviz") || s.Out != "" {
			t.Errorf("%+v, want status 1 and a word on how to get Graphviz", s)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
