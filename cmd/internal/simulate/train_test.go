package simulate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

const layersFile = "../../../testdata/layers/resnet50.json"

// Large buckets leave their last one in sight, small ones their latency.
func TestTrain(t *testing.T) {
	args := []string{"simulate", "train", "--layers", layersFile, "--topo", "4x1", "--bucket", "64KiB,1MiB,64MiB"}
	text := tierflow.Succeeds(t, args...)
	for _, want := range []string{"54 layers", "161 tensors", "ResNet-50", "64KiB", " best"} {
		if want == "54 layers" {
			want = "107 layers" // norms are layers, too
		}
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	all := kittest.Decode[[]bucketOutcome](t, tierflow.Succeeds(t, append(args, "--json")...))
	if len(all) != 3 || all[0].Buckets <= all[1].Buckets || all[1].Buckets <= all[2].Buckets || all[0].Calls <= all[1].Calls {
		t.Errorf("%+v", all)
	}
	file := filepath.Join(t.TempDir(), "step.svg")
	if again := tierflow.Succeeds(t, append(args, "--picture", file)...); again != text {
		t.Errorf("with a picture the text is another: %s", again)
	}
	svg, err := os.ReadFile(file)
	for _, want := range []string{">computing<", "sum bucket 0: ", "forward all layers: 80ms, from 0s", "backward conv1: ", "backward output: "} {
		if err != nil || !strings.Contains(string(svg), want) {
			t.Errorf("%v: the picture has no %q", err, want)
		}
	}
	spare := kittest.Decode[[]bucketOutcome](t, tierflow.Succeeds(t, append(args, "--json", "--spare")...))
	for i := range all {
		a, s := all[i], spare[i]
		if a.Computes != 240e6 && (a.Computes < 239.9e6 || a.Computes > 240.1e6) || a.Step < a.Computes || s.Step > a.Step || s.Calls != a.Calls || a.Step > a.Computes+a.Calls {
			t.Errorf("%+v; with processors to spare %+v", a, s)
		}
	}
}

// What is wrong in a file of layers is told with its line.
func TestLayers(t *testing.T) {
	for _, test := range []struct{ data, want string }{
		{`{"source": "x", "layers": [{"name": "a", "forward_ns": -1, "backward_ns": 1, "tensors": [4]}]}`, `:1: layer "a" takes -1 and 1 ns`},
		{"{\"source\": \"x\",\n\"layers\": [\n{\"name\": \"a\", \"forward_ns\": 1, \"backward_ns\": 1, \"tensors\": [0]}]}", `:3: layer "a" has tensors of [0] elements`},
		{`{"source": "x", "layers": [{"name": "a", "forward_ns": 1, "backward_ns": 1, "tensors": [4611686018427387904]}]}`, "tensor 0 has 4611686018427387904 elements; allowed are 0 to 281474976710656"},
		{`{"source": "x", "layers": [{"name": "a", "forward_ns": 1, "backward_ns": 1, "tensors": [281474976710656]}]}`, "buckets; allowed are 1048576"},
		{`{"source": "x"}`, `"layers"`},
		{`{"source": "x", "layers": [{"name": "a"}]}`, `"forward_ns"`},
	} {
		file := filepath.Join(t.TempDir(), "l.json")
		if err := os.WriteFile(file, []byte(test.data), 0o600); err != nil {
			t.Fatal(err)
		}
		tierflow.Refuses(t, test.want, "simulate", "train", "--layers", file)
	}
	for _, args := range [][]string{{}, {"--layers", layersFile, "--bucket", "much"}, {"--layers", "none.json"}} {
		if s := tierflow.Run(t, append([]string{"simulate", "train"}, args...)...); s.Status != 2 || s.Out != "" {
			t.Errorf("%v: %+v", args, s)
		}
	}
}
