package draw

import (
	"bytes"
	"fmt"
	"image/png"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

// dotEdge is an edge between tasks or steps: ranks of both ends, and attributes.
var dotEdge = regexp.MustCompile(`(?m)^\t"r(\d+)\.[^"]*" -> "r(\d+)\.[^"]*"(.*);$`)

// Tasks of several ranks are connected, and the critical path has edges.
func TestPictureOfTasksIsConnected(t *testing.T) {
	text := tierflow.Succeeds(t, strings.Fields("dag allreduce --topo 4x1 --bytes 256KiB --all --simulate assumed --format dot")...)
	group, marked := []int{0, 1, 2, 3}, 0
	for _, e := range dotEdge.FindAllStringSubmatch(text, -1) {
		from, _ := strconv.Atoi(e[1])
		to, _ := strconv.Atoi(e[2])
		old, now := group[from], group[to]
		for i := range group {
			if group[i] == old {
				group[i] = now
			}
		}
		if strings.Contains(e[3], "#CC3311") {
			marked++
		}
	}
	if slices.Min(group) != slices.Max(group) {
		t.Errorf("not all ranks are connected: %v in\n%s", group, text)
	}
	if marked < 2 {
		t.Errorf("%d edges are marked in\n%s", marked, text)
	}
}

// Graphviz draws ranks below each other, from the first to the last.
func TestPictureHasRanksInOrder(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("no Graphviz here")
	}
	for _, line := range []string{
		"dag bcast --topo 4x2 --bytes 64KiB --steps --all --format dot",
		"dag allreduce --topo 4x2 --bytes 64KiB --steps --all --format dot --simulate assumed",
		"dag allreduce --topo 4x2/rr --bytes 256KiB --all --format dot",
	} {
		cmd := exec.CommandContext(t.Context(), dot, "-Tplain")
		cmd.Stdin = strings.NewReader(tierflow.Succeeds(t, strings.Fields(line)...))
		plain, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, plain)
		}
		low, high := map[int]float64{}, map[int]float64{}
		for _, node := range regexp.MustCompile(`(?m)^node "r(\d+)\.[^"]*" \S+ (\S+)`).FindAllStringSubmatch(string(plain), -1) {
			r, _ := strconv.Atoi(node[1])
			y, err := strconv.ParseFloat(node[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			if _, seen := low[r]; !seen {
				low[r], high[r] = y, y
			}
			low[r], high[r] = min(low[r], y), max(high[r], y)
		}
		if len(low) != 8 {
			t.Fatalf("%s: %d ranks in\n%s", line, len(low), plain)
		}
		for r := 1; r < 8; r++ {
			if high[r] >= low[r-1] {
				t.Errorf("%s: rank %d is not below rank %d", line, r, r-1)
			}
		}
	}
}

// A picture that nobody could read is refused, but not a listing.
func TestPictureOfTooManyBoxes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.svg")
	for line, want := range map[string]string{
		"dag bcast --topo 4x2 --bytes 1MiB --all -o " + file:                                     "4 of 8 ranks alone",
		"dag alltoall --topo 64x12 --steps --all -o " + file:                                     "of 768 ranks alone",
		"dag allreduce --topo 2x2 --plan shape=han,fs=64KiB --format dot --max-boxes 4":          "boxes, more than --max-boxes 4",
		"dag bcast --topo 4x2 --bytes 1MiB --plan shape=han,fs=1KiB --rank 0 --steps -o " + file: "more than --max-boxes 400",

		"dag bcast --max-boxes -1": "give a number",
	} {
		s := tierflow.Run(t, strings.Fields(line)...)
		if s.Status != 2 || !strings.Contains(s.Errors, want) || strings.Count(s.Errors, "\n") != 1 || s.Out != "" {
			t.Errorf("%s: %+v, want status 2 and a line with %q", line, s, want)
		}
		if want != "give a number" && (!strings.Contains(s.Errors, "--rank") || !strings.Contains(s.Errors, "--segments")) {
			t.Errorf("%s: %s doesn't say what to do", line, s.Errors)
		}
	}
	for _, line := range []string{
		"dag bcast --topo 4x2 --bytes 1MiB --all --format text",
		"dag bcast --topo 4x2 --bytes 1MiB --all --format json",
		"dag bcast --topo 4x2 --bytes 1MiB --all --format dot --max-boxes 0",
		"dag bcast --topo 4x2 --bytes 1MiB --all --format dot --segments 0..3",
	} {
		tierflow.Succeeds(t, strings.Fields(line)...)
	}
}

func TestDagWritesPNG(t *testing.T) {
	if _, err := exec.LookPath("dot"); err != nil {
		t.Skip("no Graphviz here")
	}
	for i, more := range []string{"", "--steps", "--stages"} {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%d.png", i))
		tierflow.Succeeds(t, strings.Fields("dag allreduce --topo 2x2 --bytes 256KiB -o "+file+" "+more)...)
		picture, err := png.Decode(bytes.NewReader([]byte(kittest.Contents(t, file))))
		if err != nil || picture.Bounds().Dx() < 100 {
			t.Errorf("%s: %v", more, err)
		}
	}
}
