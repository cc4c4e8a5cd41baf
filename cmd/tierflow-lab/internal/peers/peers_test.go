package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner/rules/foreign"
)

var (
	oneNode  = site{nodes: 1, perNode: 4, tierflow: "/bin/tierflow", lab: "/bin/tierflow-lab", folder: "/d", bind: bindCore, spin: true}
	fourNode = site{nodes: 4, perNode: 2, tierflow: "/bin/tierflow", lab: "/bin/tierflow-lab", folder: "/d", rsh: "/d/cluster rsh --name x", bind: bindNone, spin: true}
)

func TestPeerCommands(t *testing.T) {
	c := cells{[]string{"bcast", "allreduce"}, []int64{8, 65536}}
	han := setting{library: openMPI, variant: "han", mca: []string{"coll_han_priority", "100"}}
	for _, test := range []struct {
		at   site
		of   setting
		want string // words in this order, among others
	}{
		{oneNode, setting{library: ourselves}, "/bin/tierflow run --bind core -n 4 -- env TIERFLOW_MACHINE=off /bin/tierflow bench coll bcast,allreduce --bytes 8,65536"},
		{fourNode, setting{library: ourselves}, "run --bind none --hosts node0:2,node1:2,node2:2,node3:2 --launcher /d/cluster rsh --name x -- /bin/tierflow bench coll --wire"},
		{oneNode, han, "mpirun.openmpi --bind-to core -n 4 self,vader coll_han_priority 100 /d/openmpi bcast,allreduce 8,65536 0.5 1 4 /d/s"},
		{fourNode, han, "--allow-run-as-root --oversubscribe --bind-to none -n 8 plm_rsh_agent /d/cluster rsh --name x btl tcp,self,vader"},
		{oneNode, setting{library: mpich}, "mpiexec.mpich -launcher fork -bind-to core -n 4 /d/mpich"},
		{fourNode, setting{library: mpich}, "unshare --ipc mpiexec.mpich -launcher-exec /d/rsh-ipc -ppn 2 /d/mpich bcast,allreduce 8,65536 0.5 4 2"},
		{fourNode, setting{library: gloo}, "/bin/tierflow run --hosts -- /d/gloo bcast,allreduce 8,65536 0.5 4 2 /d/s"},
	} {
		words := strings.Fields(strings.Join(test.at.jobCommand(test.of, c, 500*time.Millisecond, "/d/s"), " "))
		rest := words
		for want := range strings.FieldsSeq(test.want) {
			i := slices.Index(rest, want)
			if i < 0 {
				t.Errorf("%d nodes, %v: %q has no %q where it should be", test.at.nodes, test.of, words, want)
				break
			}
			rest = rest[i+1:]
		}
	}
	local := oneNode.jobCommand(setting{library: ourselves, local: true, alloc: true}, c, time.Second, "/d/s")
	if got, want := strings.Join(local, " "), "env TIERFLOW_MACHINE=off /bin/tierflow bench coll bcast,allreduce --time 1s --plan= --json --topo 1x4 --alloc --bytes 8,65536"; got != want {
		t.Errorf("goroutine ranks are measured with %q, want %q", got, want)
	}
	barrier := oneNode.jobCommand(setting{library: ourselves}, cells{[]string{"barrier"}, []int64{8}}, time.Second, "/d/s")
	if slices.Contains(barrier, "--bytes") || slices.Contains(barrier, "--wire") {
		t.Errorf("a barrier on one node is measured with %q", barrier)
	}
}

// HAN is there only where nodes have several ranks: elsewhere it would be tuned under another name.
func TestPeerDefaults(t *testing.T) {
	found := []string{openMPI, gloo}
	var names []string
	for _, s := range fourNode.defaultSettings(found, cells{[]string{"bcast"}, []int64{8, 65536}}) {
		names = append(names, s.String())
	}
	want := []string{
		"tierflow built-in rule", "Open MPI tuned, yield", "Open MPI han, yield", "Open MPI tuned, spin", "Open MPI han, spin", "Gloo default",
	}
	if !slices.Equal(names, want) {
		t.Errorf("settings %q, want %q", names, want)
	}
	names = nil
	for _, s := range oneNode.defaultSettings([]string{mpich}, cells{[]string{"bcast", "barrier"}, []int64{8, 65536}}) {
		names = append(names, s.String())
		if of := s.cellsOf(cells{}); s.alloc && (!slices.Equal(of.ops, []string{"bcast"}) || !slices.Equal(of.bytes, []int64{65536})) {
			t.Errorf("%v is measured on %v", s, of)
		}
	}
	want = []string{"tierflow built-in rule", "tierflow built-in rule, Alloc", "tierflow goroutine ranks", "MPICH default"}
	if !slices.Equal(names, want) {
		t.Errorf("on one node settings %q, want %q", names, want)
	}
	names = nil
	for _, s := range fourNode.defaultSettings([]string{mpich}, cells{[]string{"bcast", "scan"}, []int64{8}}) {
		names = append(names, s.String())
		if of := s.cellsOf(cells{}); s.genv != nil && (!slices.Equal(of.ops, []string{"scan"}) || !slices.Contains(fourNode.jobCommand(s, of, time.Second, ""), "-genv")) {
			t.Errorf("%v is measured on %v by %v", s, of, fourNode.jobCommand(s, of, time.Second, ""))
		}
	}
	want = []string{"tierflow built-in rule", "MPICH default", "MPICH forced: smp", "MPICH forced: recursive_doubling"}
	if !slices.Equal(names, want) {
		t.Errorf("of scans settings %q, want %q", names, want)
	}
	for _, s := range append(oneNode.defaultSettings(found, cells{[]string{"bcast"}, []int64{8}}), oneNode.candidateSettings("bcast")...) {
		if slices.Contains(s.mca, "coll_han_priority") {
			t.Errorf("on one node there is %v", s)
		}
	}
}

// --spin=false leaves out spinning ranks, in the sweep too, and --measured adds a row.
func TestPeerChoices(t *testing.T) {
	at := fourNode
	at.spin, at.measured = false, true
	c := cells{[]string{"alltoall"}, []int64{8}}
	all := at.defaultSettings([]string{openMPI}, c)
	var names []string
	for _, s := range all {
		names = append(names, s.String())
	}
	if want := []string{"tierflow built-in rule", "tierflow measured machine", "Open MPI tuned, yield", "Open MPI han, yield"}; !slices.Equal(names, want) {
		t.Errorf("settings %q, want %q", names, want)
	}
	if words := at.jobCommand(all[1], c, time.Second, ""); !slices.Contains(words, "TIERFLOW_MACHINE=auto") {
		t.Errorf("a measured machine is measured by %q", words)
	}
	won, err := at.bestForced(c, time.Second, io.Discard, func(s setting, c cells, _ time.Duration) ([]peerRow, error) {
		if !slices.Equal(s.mca[len(s.mca)-2:], yielding[true]) {
			t.Errorf("the sweep tries %v", s)
		}
		return []peerRow{{Collective: "alltoall", Bytes: 8, P50: 1}}, nil
	}, nothing)
	if err != nil || len(won) != 1 {
		t.Errorf("%d settings won, want one; error %v", len(won), err)
	}
	named, err := readLibraries("gloo,openmpi")
	if err != nil || len(named) != 2 || named[0].name != openMPI || named[1].name != gloo {
		t.Errorf("libraries %v, %v", named, err)
	}
}

// Blocks that differ are counted for drivers and for bench coll. Gloo is left out of what
// its driver can't do.
func TestPeerCounts(t *testing.T) {
	c := cells{[]string{"allgather"}, []int64{3000}}
	at := oneNode
	at.counts = "0,750,1,0"
	single := oneNode
	single.single = true
	for _, test := range []struct {
		at   site
		of   setting
		want string // at the end
	}{
		{oneNode, setting{library: openMPI}, "/d/openmpi allgather 3000 1 1 4 /d/s - -"},
		{at, setting{library: openMPI}, "/d/openmpi allgather 3000 1 1 4 /d/s 0,750,1,0 -"},
		{single, setting{library: mpich}, "/d/mpich allgather 3000 1 1 4 /d/s - single"},
		{single, setting{library: ourselves}, "--json --single --bytes 3000"},
		{at, setting{library: ourselves}, "--json --counts 0,750,1,0"},
	} {
		if got := strings.Join(test.at.jobCommand(test.of, c, time.Second, "/d/s"), " "); !strings.HasSuffix(got, test.want) {
			t.Errorf("%v with counts %q: %q, want %q at the end", test.of, test.at.counts, got, test.want)
		}
	}
	for _, test := range []struct {
		at   site
		ops  string
		want string // what Gloo is measured on
	}{
		{oneNode, "bcast,allgather", "bcast,allgather"},
		{oneNode, "gather,bcast", "bcast"},
		{oneNode, "gather,scatter", ""},
		{at, "allgather", ""},
	} {
		all := cells{strings.Split(test.ops, ","), []int64{8}}
		got := ""
		for _, s := range test.at.defaultSettings([]string{gloo}, all) {
			if s.library == gloo {
				got = strings.Join(s.cellsOf(all).ops, ",")
			}
		}
		if got != test.want {
			t.Errorf("%s with counts %q: Gloo is measured on %q, want %q", test.ops, test.at.counts, got, test.want)
		}
	}
	for _, test := range []struct{ ops, counts, want string }{
		{"allgather", "0,750,1,0", ""},
		{"allgather,bcast", "0,750,1,0", "bcast has no blocks that differ"},
		{"allgather", "1,2", "2 blocks for 4 ranks"},
		{"allgather", "0,0,0,0", "0 floats"},
		{"allgather", "1,2,3,999999999", "at most 67108864"},
	} {
		b := &benchPeers{topo: "1x4", rate: "none", congestion: "reno", ops: test.ops, time: 1, sweep: 1, rounds: 1, site: site{counts: test.counts, bind: bindNone}}
		switch err := b.read(); {
		case test.want == "" && (err != nil || b.sweep != 0 || !slices.Equal(b.cells.bytes, []int64{3000})):
			t.Errorf("counts %s: %v, sweep %v, sizes %v", test.counts, err, b.sweep, b.cells.bytes)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("counts %s of %s: %v, want %q in it", test.counts, test.ops, err, test.want)
		}
	}
}

// The sweep keeps the fastest setting of each size, and tries it spinning and yielding.
func TestPeerSweep(t *testing.T) {
	tried := map[string]bool{}
	run := func(s setting, c cells, _ time.Duration) ([]peerRow, error) {
		var rows []peerRow
		for _, n := range c.bytes {
			row := peerRow{Collective: c.ops[0], Bytes: n, P50: 10}
			switch {
			case n == 8 && strings.HasPrefix(s.variant, "tuned binomial, "):
				row.P50 = 5
			case n == 65536 && strings.HasPrefix(s.variant, "han adapt+tuned/64KiB, "):
				row.P50 = 4
			}
			if strings.HasSuffix(s.variant, ", spin") {
				row.P50--
			}
			rows = append(rows, row)
		}
		tried[s.variant] = true
		return rows, nil
	}
	won, err := fourNode.bestForced(cells{[]string{"bcast"}, []int64{8, 65536}}, time.Second, io.Discard, run, nothing)
	if err != nil || len(won) != 2 {
		t.Fatalf("%v, %v", won, err)
	}
	for i, want := range []struct {
		name string
		size int64
	}{{"forced: tuned binomial, spin", 8}, {"forced: han adapt+tuned/64KiB, spin", 65536}} {
		if w := won[i]; w.variant != want.name || !slices.Equal(w.only.bytes, []int64{want.size}) || !slices.Contains(w.mca, "mpi_yield_when_idle") {
			t.Errorf("%+v won %v, want %v", w, w.only, want)
		}
	}
	if !tried["tuned binomial, yield"] || !tried["tuned binomial, spin"] {
		t.Errorf("tried only %v", tried)
	}
	stop := errors.New("interrupted")
	fails := func(setting, cells, time.Duration) ([]peerRow, error) { return nil, stop }
	if _, err := fourNode.bestForced(cells{[]string{"bcast"}, []int64{8}}, time.Second, io.Discard, fails, nothing); !errors.Is(err, stop) {
		t.Errorf("an interrupted sweep ends with %v", err)
	}
}

func TestParsePeerRows(t *testing.T) {
	for _, test := range []struct {
		text string
		rows int
		err  string
	}{
		{`{"collective":"bcast","bytes":8,"iters":5,"min_us":1,"p50_us":2,"wrong":0}` + "\n" + `{"collective":"barrier","p50_us":2}`, 2, ""},
		{`{"results": [{"collective":"wire","bytes":8,"p50_us":2}, {"collective":"bcast","bytes":8,"p50_us":2,"plan":"x"}]}`, 2, ""},
		{"A launcher's warning\n" + `{"collective":"bcast","bytes":8,"p50_us":2}` + "\nand its last words", 1, ""},
		{"", 0, "no results"},
		{"segmentation fault", 0, "no results"},
		{"{", 0, "unexpected EOF"},
		{"{}", 0, "EOF"},
		{`{"collective":"bcast","bytes":8,"p50_us":0}`, 0, "no measurement"},
		{`{"collective":"bcast","bytes":"8","p50_us":1}`, 0, "cannot unmarshal"},
		{`{"collective":"bcast","bytes":8,"p50_us":1}{"collective":"bcast","bytes":16,"p50_us":1,"wrong":3}`, 1, "3 elements are wrong"},
	} {
		rows, err := parsePeerRows([]byte(test.text))
		if len(rows) != test.rows || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, %v; want %d rows and %q", test.text, rows, err, test.rows, test.err)
		}
	}
}

func FuzzParsePeerRows(f *testing.F) {
	f.Add([]byte(`{"collective":"bcast","bytes":8,"p50_us":1}`))
	f.Add([]byte(`x {"results":[{"collective":"bcast","bytes":8,"p50_us":1}]} y`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := parsePeerRows(text)
		if len(rows) == 0 && err == nil {
			t.Error("no rows and no error")
		}
		for _, r := range rows {
			if r.P50 <= 0 || r.Bytes < 0 || r.Wrong > 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestPeerTable(t *testing.T) {
	all := cells{[]string{"bcast"}, []int64{8, 16}}
	table := &peerTable{Missing: []missingPeer{{gloo, "libgloo-dev", "no compiler"}}, Failures: []string{}}
	ours, theirs := setting{library: ourselves, variant: asItIs}, setting{library: openMPI, variant: "y"}
	row := func(op string, n int64, p50 float64) peerRow {
		return peerRow{Collective: op, Bytes: n, P50: p50, P99: 3 * p50}
	}
	for _, p50 := range []float64{12, 10, 11} {
		table.addRows(ours, "tierflow", []peerRow{row(wireOp, 16, p50/2), row("bcast", 16, p50), row("bcast", 8, 1)})
		table.addRows(theirs, "mpirun", []peerRow{row("bcast", 16, 2*p50)})
	}
	var text, asJSON bytes.Buffer
	if err := table.print(&text, all, false); err != nil {
		t.Fatal(err)
	}
	want := `collective  bytes  library   setting         p50 µs  least–largest  p99 µs  x tierflow
wire        16B    -         one TCP stream  5.50    5.00–6.00      16.5    -
bcast       8B     tierflow  built-in rule   1.00    1.00–1.00      3.00    1.00
bcast       16B    tierflow  built-in rule   11.0    10.0–12.0      33.0    1.00
bcast       16B    Open MPI  y               22.0    20.0–24.0      66.0    2.00
# tierflow built-in rule: tierflow
# Open MPI y: mpirun
`
	if text.String() != want {
		t.Errorf("printed\n%swant\n%s", &text, want)
	}
	if err := table.print(&asJSON, all, true); err != nil {
		t.Fatal(err)
	}
	got := kittest.Decode[peerTable](t, asJSON.String())
	if last := got.Results[2]; got.Wire["16"] != 5.5 || len(got.Results) != 3 || last.Ratio != 2 || last.Rounds != 3 || last.Command != "mpirun" {
		t.Errorf("printed\n%s", &asJSON)
	}
	if err := new(peerTable).print(io.Discard, all, false); err == nil {
		t.Error("an empty table is no error")
	}
}

// What fails keeps the rows that it had, and is not tried again.
func TestPeerRoundsGoOnWithout(t *testing.T) {
	good, slow := setting{library: ourselves, variant: asItIs}, setting{library: mpich, variant: "default"}
	table, turns := &peerTable{}, map[string]int{}
	b := &benchPeers{rounds: 3, cells: cells{[]string{"bcast"}, []int64{8, 65536}}}
	run := func(s setting, _ cells, _ time.Duration) ([]peerRow, error) {
		turns[s.library]++
		rows := []peerRow{{Collective: "bcast", Bytes: 8, P50: 4}, {Collective: "bcast", Bytes: 65536, P50: 8}}
		if s.library == mpich {
			table.addFailure(io.Discard, s, errors.New("takes over 20s"))
			rows = rows[:1]
		}
		return rows, nil
	}
	if err := b.runRounds([]setting{slow, good}, &place{site: oneNode}, table, io.Discard, run); err != nil {
		t.Fatal(err)
	}
	table.finish()
	if turns[mpich] != 1 || turns[ourselves] != 3 || len(table.Results) != 3 || table.Results[0].Rounds != 1 || table.Results[1].Rounds != 3 {
		t.Errorf("turns %v, %d rows", turns, len(table.Results))
	}
	if one, large := jobTime(cells{[]string{"bcast"}, []int64{8}}, time.Second), jobTime(cells{[]string{"bcast"}, []int64{64 << 20}}, time.Second); one > 20*time.Second || large < one+time.Minute {
		t.Errorf("a job may take %v for 8 bytes and %v for 64 MiB", one, large)
	}
}

// Ratios are those of rounds, and to what tierflow does as it is; what failed has
// fewer rounds.
func TestPeerRatios(t *testing.T) {
	table := &peerTable{}
	row := func(p50 float64) []peerRow { return []peerRow{{Collective: "bcast", Bytes: 16, P50: p50}} }
	for round, p50 := range []float64{10, 20, 40} {
		table.addRows(setting{library: ourselves, variant: asItIs}, "", row(p50))
		table.addRows(setting{library: ourselves, variant: withAlloc}, "", row(p50/2))
		if round < 2 {
			table.addRows(setting{library: mpich, variant: "default"}, "", row([]float64{50, 20}[round]))
		}
	}
	table.finish()
	for i, want := range [][3]float64{{1, 1, 1}, {.5, .5, .5}, {1, 3, 5}} {
		if r := table.Results[i]; [3]float64{r.LeastRatio, r.Ratio, r.LargestRatio} != want {
			t.Errorf("%s %s: ratios %v, %v, %v; want %v", r.Library, r.Variant, r.LeastRatio, r.Ratio, r.LargestRatio, want)
		}
	}
}

// Where tierflow is tuned, ratios refer to the tuned time, the rule's ratio too. Where
// the tuned one failed they refer to the rule's time.
func TestPeerRatiosTuned(t *testing.T) {
	table := &peerTable{Tuning: &peerTuning{Command: "tierflow tune"}}
	row := func(n int64, p50 float64) peerRow {
		return peerRow{Collective: "bcast", Bytes: n, P50: p50, Plan: "shape=flat"}
	}
	for range 2 {
		table.addRows(setting{library: ourselves, variant: tuned}, "--table", []peerRow{{Collective: wireOp, Bytes: 16, P50: 3}, row(16, 5)})
		table.addRows(setting{library: ourselves, variant: asItIs}, "", []peerRow{{Collective: wireOp, Bytes: 16, P50: 3}, row(16, 10), row(32, 20)})
		table.addRows(setting{library: mpich, variant: "default"}, "", []peerRow{row(16, 20), row(32, 20)})
	}
	var text, notes bytes.Buffer
	table.notePlans(&notes)
	if got, want := notes.String(), "# tuned: bcast 16B shape=flat\n"; got != want {
		t.Errorf("notes %q, want %q", got, want)
	}
	if err := table.print(&text, cells{[]string{"bcast"}, []int64{16, 32}}, false); err != nil {
		t.Fatal(err)
	}
	const want = `# x tierflow: times what tierflow tuned takes in the same round; where that has no row, its built-in rule
collective  bytes  library   setting         p50 µs  least–largest  p99 µs  x tierflow
wire        16B    -         one TCP stream  3.00    3.00–3.00      -       -
bcast       16B    tierflow  tuned           5.00    5.00–5.00      -       1.00
bcast       16B    tierflow  built-in rule   10.0    10.0–10.0      -       2.00
bcast       16B    MPICH     default         20.0    20.0–20.0      -       4.00
bcast       32B    tierflow  built-in rule   20.0    20.0–20.0      -       1.00
bcast       32B    MPICH     default         20.0    20.0–20.0      -       1.00
# tierflow tuning: tierflow tune
`
	if !strings.HasPrefix(text.String(), want) {
		t.Errorf("printed\n%swant first\n%s", &text, want)
	}
}

// script writes an executable that stands in for another library's tool.
func script(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A fake MPI: its compiler makes a driver out of a script, its launcher starts that.
func TestPeerWithFakeDriver(t *testing.T) {
	tools := t.TempDir()
	script(t, filepath.Join(tools, "mpicc.fake"), `printf '#!/bin/sh\necho "{\\"collective\\":\\"$1\\",\\"bytes\\":$2,\\"p50_us\\":7}"\n' >"$3" && chmod +x "$3"`)
	script(t, filepath.Join(tools, "mpicc.broken"), "echo no such header >&2; exit 1")
	script(t, filepath.Join(tools, "mpirun.openmpi"), `echo warning; while [ "${1%/openmpi}" = "$1" ]; do shift; done; exec "$@"`)
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	p := &place{site: site{nodes: 1, perNode: 2, bind: bindNone, folder: t.TempDir()}}
	table, notes := peerTable{Versions: map[string]string{}}, bytes.Buffer{}
	found, err := p.findPeers(t.Context(), []peer{
		{openMPI, "openmpi", []string{"mpicc.fake"}, "mpi.c", nil},
		{mpich, "mpich", []string{"mpicc.broken"}, "mpi.c", nil},
		{gloo, "libgloo-dev", []string{"no-such-compiler"}, "gloo.cc", nil},
	}, &table, &notes)
	if err != nil || !slices.Equal(namesOf(found), []string{openMPI}) || len(table.Missing) != 2 || table.Versions[openMPI] == "" || len(table.Versions) != 1 {
		t.Fatalf("found %v, missing %v, versions %v, %v", found, table.Missing, table.Versions, err)
	}
	for i, want := range []string{"mpich would bring: exit status 1: no such header", "libgloo-dev would bring"} {
		if !strings.Contains(table.Missing[i].String(), want) || !strings.Contains(notes.String(), want) {
			t.Errorf("%v; want %q in it", table.Missing[i], want)
		}
	}
	rows, err := p.runSetting(t.Context(), setting{library: openMPI}, cells{[]string{"bcast"}, []int64{64}}, time.Second)
	if err != nil || len(rows) != 1 || rows[0] != (peerRow{Collective: "bcast", Bytes: 64, P50: 7}) {
		t.Errorf("rows %+v, %v", rows, err)
	}
	script(t, p.driver(openMPI), "echo lost contact >&2; exit 3")
	if _, err = p.runSetting(t.Context(), setting{library: openMPI}, cells{[]string{"bcast"}, []int64{64}}, time.Second); err == nil || !strings.Contains(err.Error(), "exit status 3: lost contact") {
		t.Errorf("a failing driver is %v", err)
	}
}

// An interrupt ends the whole group of processes, not its leader alone.
func TestPeerInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "begun")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the wait below
		_ = clocktest.Await(t.Context(), func() bool {
			_, err := os.Stat(file)
			return err == nil
		})
		cancel()
	}()
	// The sleeper keeps the output open: output would wait for it.
	_, err := runCommand(ctx, time.Minute, "/bin/sh", "-c", "sleep 600 & touch "+file+"; wait")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted with %v", err)
	}
	if _, err := runCommand(t.Context(), 50*time.Millisecond, "sleep", "600"); err == nil || !strings.Contains(err.Error(), "takes over 50ms") {
		t.Errorf("too long a command ends with %v", err)
	}
}

// What the environment chooses for this user's jobs must not choose for those that are compared.
func TestPeersChooseThemselves(t *testing.T) {
	t.Setenv(env.Table, "table.json")
	t.Setenv(env.Plan, "fs=1KiB")
	t.Setenv("TIERFLOW_OTHER", "kept")
	out, err := runCommand(t.Context(), time.Minute, "/bin/sh", "-c", "env | grep ^TIERFLOW_")
	if want := "TIERFLOW_OTHER=kept\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

// The program that is measured is the named one, or the one beside this one, or in PATH.
func TestFindTierflow(t *testing.T) {
	beside, elsewhere, empty := t.TempDir(), t.TempDir(), t.TempDir()
	for _, dir := range []string{beside, elsewhere} {
		script(t, filepath.Join(dir, "tierflow"), "exit 0")
	}
	named := filepath.Join(elsewhere, "other")
	script(t, named, "exit 0")
	for _, test := range []struct{ dir, named, path, want string }{
		{beside, "", elsewhere, filepath.Join(beside, "tierflow")},
		{empty, "", elsewhere, filepath.Join(elsewhere, "tierflow")},
		{beside, named, elsewhere, named},
		{empty, "", empty, ""},
		{beside, filepath.Join(empty, "none"), elsewhere, ""},
	} {
		t.Setenv("PATH", test.path)
		got, err := findTierflow(filepath.Join(test.dir, "tierflow-lab"), test.named)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}

func TestPeersReal(t *testing.T) {
	if os.Getenv("TIERFLOW_TEST_LONG") == "" {
		t.Skip("launches other libraries; TIERFLOW_TEST_LONG=1 runs it")
	}
	if os.Getuid() != 0 {
		t.Skip("network namespaces are made by root only")
	}
	if _, err := exec.LookPath("mpirun.openmpi"); err != nil {
		t.Skipf("Debian's openmpi-bin is not installed: %v", err)
	}
	folder := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", folder, "github.com/tierflow/tierflow/cmd/tierflow-lab", "github.com/tierflow/tierflow/cmd/tierflow").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "tierflow-lab"), "peers", "--topo", "2x2", "--bytes", "64KiB",
		"--time", "20ms", "--sweep", "0", "--rounds", "1", "--json")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &complaints)
	}
	var got peerTable
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for _, library := range []string{ourselves, openMPI} {
		if !slices.ContainsFunc(got.Results, func(r *peerResult) bool { return r.Library == library && r.Ratio > 0 }) {
			t.Errorf("nothing of %s in\n%s\n%s", library, out, &complaints)
		}
	}
	if got.Wire["65536"] <= 0 {
		t.Errorf("no stream in\n%s", out)
	}
}

// The table of other libraries' algorithms has each one that is tried.
func TestAlgorithmsHaveNumbers(t *testing.T) {
	for op, all := range tunedAlgorithms {
		for _, a := range all {
			if row, err := foreign.Find(foreign.OpenMPI, op, a.name); err != nil || row.Number == 0 || row.Name != a.name {
				t.Errorf("%s by %s is %+v, %v; want a number", op, a.name, row, err)
			}
		}
	}
}
