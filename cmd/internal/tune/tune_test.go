package tune

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// tierflow is the command with what is in this package.
var tierflow = kittest.Of("tierflow", Command)

// smallSpace is arguments that leave few configurations, all of them fast.
func smallSpace(args ...string) []string { return append(fewPlans(args...), "--max", "64KiB") }

// fewPlans is smallSpace of any sizes.
func fewPlans(args ...string) []string {
	return append(args, "--topo", "2x2", "--link", "none", "--submodules", "adapt,sm", "--segments", "16KiB,all",
		"--windows", "2", "--inner", "0", "--time", "1ms", "--plan", "i=adapt/binomial")
}

func TestTune(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	s := kittest.Decode[Summary](t, tierflow.Succeeds(t, smallSpace("tune", "-o", file, "--ops", "bcast,allreduce,barrier", "--min", "1KiB", "--json")...))
	// 1, 4, 16 and 64 KiB of two collectives, and a barrier
	if s.Entries != 9 || s.Measurements == 0 || s.Measurements != s.Planned {
		t.Errorf("%+v", s)
	}
	made := read(t, file)
	p := made.Provenance
	if p.Method != "tasks+heuristics" || p.Date == "" || len(p.Machines) != 1 || p.Machines[0] != "2x2" || p.CPUs == 0 ||
		p.Links == "" || p.Stop == "" || p.Intervals == "" || p.Types != "f32 sum" {
		t.Errorf("provenance %+v", p)
	}
	for _, e := range made.Entries {
		for _, c := range e.Candidates {
			if len(e.Candidates) < 2 || !strings.Contains(c.Plan, "i=adapt/binomial") {
				t.Errorf("%+v: want alternatives, with the plan that was forced", e)
			}
		}
	}
}

// A simulated machine is tuned without ranks. Its table says so, decides for that machine,
// and is not mixed with measured times.
func TestTuneSimulated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	args := strings.Fields("tune -o " + file + " --topo 32x2 --simulate assumed --ops bcast --bytes 16KiB --segments all --inner 0 --plan s=sm --json")
	s := kittest.Decode[Summary](t, tierflow.Succeeds(t, args...))
	if s.Entries != 1 || s.Measurements == 0 || s.Measurements != s.Planned {
		t.Errorf("%+v", s)
	}
	made := read(t, file)
	p := made.Provenance
	if p.Simulated != "a machine, assumed" || p.Links != "simulated on a machine, assumed" || len(p.Hosts) > 0 || p.CPUs > 0 {
		t.Errorf("provenance %+v", p)
	}
	for _, c := range made.Entries[0].Candidates {
		if c.From == table.FromMeasured {
			t.Errorf("%+v is called measured", c)
		}
	}
	before := made.Entries[0].Candidates
	if again := kittest.Decode[Summary](t, tierflow.Succeeds(t, append(args, "--resume")...)); again.Entries != 1 || again.Measurements != 0 {
		t.Errorf("resumed %+v, before %+v", again, s)
	}
	if made = read(t, file); !reflect.DeepEqual(before, made.Entries[0].Candidates) {
		t.Errorf("resumed: %+v, before %+v", made.Entries[0].Candidates, before)
	}
	for _, test := range []struct{ args, want string }{
		{"tune -o " + file + " --resume --topo 2x1 --ops bcast --bytes 4", "was simulated on a machine, assumed, now times are measured"},
		{"tune check " + file + " --fix --topo 2x1", "was simulated on a machine, assumed, now times are measured"},
		{"tune -o x.json --simulate nosuch.json", "--simulate: open nosuch.json"},
		{"tune -o x.json --simulate assumed --link none", "--link: the machine of --simulate says"},
	} {
		if s := tierflow.Run(t, strings.Fields(test.args)...); s.Status == 0 || !strings.Contains(s.Errors, test.want) {
			t.Errorf("%s: %+v, want %q", test.args, s, test.want)
		}
	}
}

// Times of calls back to back make a table that says so, as Explain does. It is not mixed
// with times of single calls, and a simulated call is no other.
func TestTuneRegime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	args := smallSpace("tune", "-o", file, "--ops", "bcast", "--min", "64KiB", "--json")
	on := tasktest.Topology(t, "2x2")
	for _, test := range []struct {
		add   []string
		want  costs.Regime
		calls string
	}{
		{nil, costs.Single, "table: " + file + ", of single calls\n"},
		{[]string{"--regime", "back-to-back"}, costs.BackToBack, "table: " + file + ", of calls back to back\n"},
	} {
		tierflow.Succeeds(t, append(args, test.add...)...)
		if p := read(t, file).Provenance; p.Regime != test.want {
			t.Errorf("%v: provenance %+v; want %v", test.add, p, test.want)
		}
		text, err := planner.Explain(tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: 64 << 10}, on, &planner.Options{Table: file})
		if err != nil || !strings.Contains(text, test.calls) {
			t.Errorf("explained as\n%s%v\nwant in it %q", text, err, test.calls)
		}
	}
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{slices.Concat(args, []string{"--resume"}), 1, "has times of calls that were back-to-back, these are single: a table has one kind; give --regime back-to-back"},
		{slices.Concat(args, []string{"--regime", "twice"}), 2, `regime "twice" is not known; known are single, back-to-back`},
		{strings.Fields("tune -o x.json --simulate assumed --regime back-to-back"), 2, "--regime back-to-back: simulated calls are single"},
	} {
		if s := tierflow.Run(t, test.args...); s.Status != test.status || !strings.Contains(s.Errors, test.want) {
			t.Errorf("%v: %+v, want status %d and %q", test.args, s, test.status, test.want)
		}
	}
}

// A list of sizes is tuned as it is, each size once.
func TestTuneBytes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	s := kittest.Decode[Summary](t, tierflow.Succeeds(t, fewPlans("tune", "-o", file, "--ops", "bcast,barrier", "--bytes", "5000,24:96:x2,48", "--json")...))
	table := read(t, file)
	var sizes []int64
	for _, e := range table.Entries {
		if e.Collective == "bcast" {
			sizes = append(sizes, e.Bytes)
		}
	}
	if s.Entries != 5 || !slices.Equal(sizes, []int64{24, 48, 96, 5000}) {
		t.Errorf("%d entries, of bcast %v", s.Entries, sizes)
	}
}

// A search that is interrupted leaves a table that another goes on with, on one
// machine after the other.
func TestTuneResume(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	args := smallSpace("tune", "-o", file, "--ops", "bcast", "--min", "64KiB")
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if s := tierflow.RunIn(interrupted, t, args...); s.Status != 1 || !strings.Contains(s.Errors, "--resume goes on") {
		t.Fatalf("status %d, %s", s.Status, s.Errors)
	}
	if table := read(t, file); len(table.Measured) > 0 {
		t.Fatalf("interrupted before it began, the table has %+v", table)
	}
	first := kittest.Decode[Summary](t, tierflow.Succeeds(t, append(args, "--resume", "--json")...))
	again := kittest.Decode[Summary](t, tierflow.Succeeds(t, append(args, "--resume", "--json")...))
	if first.Measurements == 0 || again.Measurements != 0 || again.Entries != 1 {
		t.Errorf("first %+v, again %+v", first, again)
	}
	other := kittest.Decode[Summary](t, tierflow.Succeeds(t, append(args, "--resume", "--json", "--topo", "3x2")...))
	if other.Entries != 2 {
		t.Errorf("another machine: %+v", other)
	}
	s := tierflow.Run(t, append(args, "--resume", "--link", "i=1us")...)
	if s.Status != 1 || !strings.Contains(s.Errors, "was measured over links") {
		t.Errorf("over other links: %+v", s)
	}
}

func TestTuneCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	const suspicious = `{"tierflow_table":2,"provenance":{},"entries":[
{"collective":"bcast","levels":{"i":2,"s":2},"layout":"block","ranks":"goroutines","links":"no link is emulated: all ranks share memory","bytes":64,"candidates":[{"plan":"shape=flat,fs=all,w=1,ib=adapt/chain","ns":100000000,"from":"measured"}]},
{"collective":"bcast","levels":{"i":2,"s":2},"layout":"block","ranks":"goroutines","links":"no link is emulated: all ranks share memory","bytes":65536,"candidates":[{"plan":"shape=flat,fs=all,w=1,ib=adapt/chain","ns":1,"from":"measured"}]}]}`
	if err := os.WriteFile(file, []byte(suspicious), 0o600); err != nil {
		t.Fatal(err)
	}
	s := tierflow.Run(t, "tune", "check", file)
	if s.Status != 1 || !strings.Contains(s.Out, "more bytes are much faster: bcast of 64KiB") || !strings.Contains(s.Out, "2 entries, 1 violation\n") {
		t.Errorf("%+v", s)
	}
	tierflow.Run(t, "tune", "check", file, "--fix", "--topo", "2x2", "--link", "none", "--time", "1ms") // the machine may be disturbed again
	if table := read(t, file); len(table.Measured) != 2 || table.Entries[1].Candidates[0].NS == 1 {
		t.Errorf("not measured again: %+v", table)
	}
	if s := tierflow.Run(t, "tune", "check", "/no/such/file"); s.Status != 1 {
		t.Errorf("%+v", s)
	}
}

// What tasks by themselves predict below the wire is not chosen: the choice has run, beside the rule's plan, and the
// check finds nothing on the machine.
func TestTunedChoicesHaveRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	tierflow.Succeeds(t, "tune", "-o", file, "--simulate", "assumed", "--topo", "8x2", "--ops", "allreduce,bcast", "--bytes", "64KiB,1MiB",
		"--shapes", "flat-rsag,flat-sag", "--windows", "8", "--inner", "0", "--races", "never")
	for _, e := range read(t, file).Entries {
		if best := e.Candidates[0]; best.From != table.FromSimulated {
			t.Errorf("%s of %d bytes: %s is only %s", e.Collective, e.Bytes, best.Plan, best.From)
		}
	}
	s := tierflow.Run(t, "tune", "check", file)
	if s.Status != 0 || !strings.Contains(s.Out, "4 entries, 4 of them simulated on a machine, assumed, 0 violations") {
		t.Errorf("%+v", s)
	}
}

// Wrong arguments are refused before anything is measured.
func TestTuneRefuses(t *testing.T) {
	tierflow.RefusesAll(t, "", map[string]string{
		"tune":                                           "give -o FILE",
		"tune -o x --method guess":                       "unknown method \"guess\"; known are [exhaustive",
		"tune -o x --ops bast":                           "unknown collective",
		"tune -o x --min 2MiB --max 1MiB":                "max not below min",
		"tune -o x --bytes 64KiB --min 4B":               "--bytes and --min exclude each other",
		"tune -o x --bytes 64KiB --max 1MiB":             "--bytes and --max exclude each other",
		"tune -o x --bytes 64KiB,0":                      "--bytes 64KiB,0: from 1 byte on",
		"tune -o x --bytes=":                             "--bytes: ",
		"tune -o x --bytes 6":                            "not a multiple of 4 bytes",
		"tune -o x --ops bcast,allgather --bytes 256MiB": "--bytes 256MiB: allgather of 8 ranks takes over 4GiB together",
		"tune -o x --shapes star":                        "--shapes: ",
		"tune -o x --submodules tcp":                     "--submodules: unknown submodule",
		"tune -o x --segments 0":                         "--segments: 0: at least 1",
		"tune -o x --windows 0":                          "--windows: ",
		"tune -o x --time 0s":                            "a time is above 0",
		"tune all":                                       "known is check",
	})
}

func TestTuneSizes(t *testing.T) {
	for _, test := range []struct{ min, max, want string }{
		{"4B", "16MiB", "4B,16B,64B,256B,1536B,4KiB,16KiB,64KiB,256KiB,1536KiB,4MiB,16MiB"},
		{"1KiB", "1KiB", "1KiB"},
		{"3B", "10B", "3B,10B"},
	} {
		u := Tuning{min: test.min, max: test.max}
		all, err := u.readLadder()
		if err != nil || sizesText(all) != test.want {
			t.Errorf("%s to %s: %s, %v; want %s", test.min, test.max, sizesText(all), err, test.want)
		}
	}
}

// Method learn tunes goroutine ranks and simulated machines, and says what it measures.
func TestTuneLearn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	for _, args := range [][]string{
		smallSpace("tune", "-o", file, "--ops", "bcast,allreduce", "--min", "1KiB", "--method", "learn", "--why", "--json"),
		strings.Fields("tune -o " + file + " --topo 16x2 --simulate assumed --ops bcast --bytes 1KiB,64KiB --windows 2 --method learn --learn variance,no-prior --why --json"),
	} {
		out := tierflow.Run(t, args...)
		s := kittest.Decode[Summary](t, out.Out)
		if out.Status != 0 || s.Entries == 0 || s.Measurements == 0 || !strings.Contains(out.Errors, "not measured") {
			t.Errorf("%v: %+v", args, out)
		}
		made := read(t, file)
		if made.Provenance.Method != "learn" {
			t.Fatalf("%v: %+v", args, made)
		}
		for _, m := range made.Measured {
			if m.Spent <= 0 {
				t.Errorf("%v: how long took the measurement %+v?", args, m)
			}
		}
	}
	tierflow.RefusesAll(t, "", map[string]string{
		"tune -o x.json --method learn --learn luck": "--learn: unknown word \"luck\"; known are variance, random",
		"tune -o x.json --why":                       "--learn and --why are of --method learn; it is tasks+heuristics",
	})
}
