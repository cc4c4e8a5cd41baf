package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/cmd/internal/launch"
)

// runJob runs the command as tierflow run does, and returns what its ranks have printed.
func runJob(t *testing.T, o launch.Options, args ...string) string {
	t.Helper()
	var out, errors bytes.Buffer
	o.Program = append([]string{os.Args[0]}, args...)
	o.Env = append(os.Environ(), asRank+"=1")
	o.NoPrefix, o.Oversubscribe, o.Timeout = true, true, time.Minute
	if status, err := launch.Run(t.Context(), o, nil, &out, &errors); status != 0 {
		t.Fatalf("%q: status %d, %v\n%s%s", args, status, err, &out, &errors)
	}
	return out.String()
}

// Ranks are killed one after the other, others take their place, and each kill has its times in
// their order.
func TestRecover(t *testing.T) {
	for flags, kills := range map[string]int{"--kills 2": 2, "--kills 1 --victim leaf --twice": 1} {
		out := runJob(t, launch.Options{Ranks: 4, MaxRestarts: 6}, append([]string{"bench", "recover", "--bytes", "64"}, strings.Fields(flags)...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) < 3 || !strings.HasPrefix(lines[0], "# ") || !strings.HasSuffix(lines[0], "; allreduce of 64B") {
			t.Fatalf("%s prints\n%s", flags, out)
		}
		found := 0
		for _, line := range lines[2:] {
			cells := strings.Fields(line)
			if len(cells) != 2+3*int(times-heard) {
				t.Fatalf("%s: a row of %d cells in\n%s", flags, len(cells), out)
			}
			n, err := strconv.Atoi(cells[1])
			if err != nil {
				t.Error(err)
			}
			found += n
			var most [times]float64
			for column := heard; column < times; column++ {
				if most[column], err = strconv.ParseFloat(cells[2+3*int(column-heard)+2], 64); err != nil {
					t.Error(err)
				}
			}
			if most[shrunk] > most[first] || most[first] > most[full] || most[full] <= 0 || most[still] <= 0 {
				t.Errorf("%s: times %v in\n%s", flags, most, out)
			}
		}
		if found != kills {
			t.Errorf("%s: %d kills in\n%s", flags, found, out)
		}
	}
}

// The last ranks get the state of the first, which takes a time and a ratio to what a link could.
func TestSync(t *testing.T) {
	out := runJob(t, launch.Options{Ranks: 3}, "bench", "sync", "--bytes", "64KiB", "--late", "2", "--times", "3", "--gbit", "1")
	head, rest, _ := strings.Cut(out, "\n")
	if !strings.HasSuffix(head, "; 64KiB to 2 ranks, 3 times") {
		t.Errorf("the head is %q", head)
	}
	var median, shortest, longest, ratio float64
	n, err := fmt.Sscanf(rest, "median %f s (%f of bytes / rate), shortest %f s (%f of bytes / rate), longest %f s", &median, &ratio, &shortest, &ratio, &longest)
	if err != nil || n != 5 || shortest > median || median > longest || ratio <= 0 {
		t.Errorf("%d numbers, %v in %q", n, err, rest)
	}
}

// A plain stream is measured first, and the rows that follow have a ratio to it.
func TestBesideWire(t *testing.T) {
	args := []string{"bench", "coll", "allreduce,barrier", "--bytes", "64KiB", "--iters", "3", "--wire", "--json", "--plan", "shape=flat"}
	rows := kittest.Decode[printed[Result]](t, runJob(t, launch.Options{Hosts: "a:1,b:1", Launcher: "local"}, args...)).Results
	if len(rows) != 3 {
		t.Fatalf("%d rows; want a stream, an allreduce and a barrier: %+v", len(rows), rows)
	}
	if stream := rows[0]; stream.Collective != "wire" || stream.Shape != "tcp" || stream.ToWire != 1 || stream.Bytes != 64<<10 || stream.P50 <= 0 {
		t.Errorf("the stream's row is %+v", stream)
	}
	if row := rows[1]; row.ToWire <= 0 || row.Wrong != 0 || row.Shape != "flat" {
		t.Errorf("the row beside it is %+v", row)
	}
	if rows[2].ToWire != 0 {
		t.Errorf("a barrier has a ratio to a stream: %+v", rows[2])
	}
}
