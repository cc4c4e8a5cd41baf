package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/submodules/all"
)

func TestHelp(t *testing.T) {
	for _, command := range []string{"", "bench", "bench coll", "bench p2p", "bench recover", "bench sync", "bench task", "plan", "dag", "trace", "simulate", "verify", "info", "doctor", "docs", "run", "tune", "tune check"} {
		name := strings.ReplaceAll("help "+command, " ", "_")
		t.Run(name, func(t *testing.T) {
			args := append(strings.Fields(command), "--help")
			help := tierflow.Succeeds(t, args...)
			kittest.CheckGolden(t, strings.TrimSuffix(name, "_")+".txt", help)
			if again := tierflow.Succeeds(t, append([]string{"help"}, strings.Fields(command)...)...); again != help {
				t.Errorf("tierflow help %s prints something else than --help", command)
			}
		})
	}
}

// tierflow is the whole command.
var tierflow kittest.Runner = func() *cobra.Command { return rootCommand(all.Submodules()) }

// Each wrong call ends with status 2 and one complaint, and prints nothing else.
func TestWrongArguments(t *testing.T) {
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken.json")
	if err := os.WriteFile(broken, []byte(`{"spec": "4y2"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, line := range []string{
		"",
		"nosuch",
		"help nosuch",
		"--nosuch",
		"bench",
		"bench col allreduce",
		"bench coll",
		"bench coll allreduce bcast",
		"bench coll gossip",
		"bench coll bcast,bcast",
		"bench coll allreduce --topo 4y2",
		"bench coll allreduce --topo missing.json",
		"bench coll allreduce --topo " + broken,
		"bench coll allreduce --bytes 4x",
		"bench coll allreduce --bytes all",
		"bench coll allreduce --bytes 5",
		"bench coll allreduce --bytes -4",
		"bench coll allreduce --bytes 4:1MiB",
		"bench coll allreduce --bytes 4:1MiB:x1",
		"bench coll allreduce --bytes 1MiB:4:x4",
		"bench coll allreduce --bytes 1PiB",
		"bench coll allreduce --bytes 1TiB",
		"bench coll allreduce --dtype f33 --reduce-op summ",
		"bench coll allreduce --reduce-op band",
		"bench coll allreduce --root 1",
		"bench coll bcast --root 8",
		"bench coll bcast --root 4294967296",
		"bench coll bcast --root every",
		"bench coll bcast --root all --topo 300",
		"bench coll allreduce --root all",
		"bench coll bcast --root all --bytes 1GiB",
		"bench coll allgather,bcast --counts 1,2",
		"bench coll allgather --topo 2 --counts 99999999999,1",
		"bench coll bcast --reduce-op sum",
		"bench coll barrier --bytes 4",
		"bench coll allreduce --link 1gbit",
		"bench coll allreduce --link i=1gbit,2gbit",
		"bench coll allreduce --link i=fast",
		"bench coll allreduce --link i=-1gbit",
		"bench coll allreduce --topo 8 --link i=1gbit",
		"bench coll allreduce --plan shape=star",
		"bench coll allreduce --plan i=nosuch",
		"bench coll allreduce --plan s=sm/slots/x",
		"bench coll allreduce --table missing.json",
		"bench coll allreduce --iters -1",
		"bench coll allreduce --time 0s",
		"bench coll allreduce --iters 3 --time 1s",
		"bench coll allreduce --iters many",
		"bench task",
		"bench task ib sb",
		"bench task zz",
		"bench task ib --topo 8",
		"bench task ib --bytes 4,8",
		"bench task ib --bytes 1TiB",
		"bench task ib --bytes 5",
		"bench task ib --time 0s",
		"bench task ib --plan i=nosuch",
		"bench accuracy bcast --machine m.json",
		"bench algorithms",
		"bench disturb -- true",
		"bench overlap",
		"bench peers --topo 1x4",
		"bench share bcast --help",
		"tune compare --topo 2x2",
		"tune models",
		"tune validate",
		"simulate bcast --plan mpich",
		"plan",
		"plan allreduce --bytes 4,8",
		"plan bcast --counts 1",
		"plan allgather --counts 1",
		"plan allgather --topo 2 --counts 1,x",
		"plan allgather --topo 2 --counts 1,-1",
		"plan allgather --topo 2 --counts 1,2 --bytes 4",
		"plan allreduce --table missing.json",
		"dag allreduce --format pdf",
		"dag allreduce --stages --all",
		"dag allreduce --stages --reduce",
		"dag allreduce --stages --steps",
		"dag allreduce --role boss",
		"dag allreduce --role member --topo 4x1",
		"dag allreduce --rank 8",
		"dag allreduce --rank 1 --all",
		"dag allreduce --segments 3..1",
		"dag allreduce --segments x",
		"dag allreduce --segments 99",
		"dag allreduce --steps --plan i=sm",
		"dag allreduce --table missing.json",
		"trace allreduce",
		"trace allreduce -o x --format svg",
		"trace allreduce --format text --width 0",
		"trace allreduce --format text --table missing.json",
		"trace --recorder",
		"trace --recorder x --topo 4x2",
		"trace --recorder x --format svg",
		"trace --recorder x --format perfetto",
		"trace --recorder x --last -1",
		"verify",
		"verify gossip",
		"verify all --random 0",
		"verify all --seed 3",
		"verify all --random 3 --bytes 4",
		"verify all --random 3 --table missing.json",
		"verify all --plan all --table missing.json",
		"verify all --table missing.json",
		"verify allgather --random 3 --counts 1,2",
		"verify all --counts 1,2",
		"verify bcast --max-ranks 0",
		"verify bcast --root 8",
		"verify bcast --root 4294967296",
		"dag bcast --root 4294967296",
		"trace bcast --root -4294967296",
		"info now",
		"docs now",
		"docs --port 65536",
		"docs --out x --open",
		"docs --out x --port 8000",
		"docs --out=",
		"docs --out " + broken,
		"run",
		"run -n 2 --",
		"run -n two -- ./prog",
		"run --ports 40000: -- ./prog",
	} {
		s := tierflow.Run(t, strings.Fields(line)...)
		if s.Status != 2 || s.Out != "" || strings.Count(s.Errors, "tierflow") == 0 {
			t.Errorf("tierflow %s: status %d, output %q, errors %q; want status 2 and a complaint", line, s.Status, s.Out, s.Errors)
		}
		all.WriteString(strings.ReplaceAll("$ tierflow "+line+"\n"+s.Errors, folder, "FOLDER"))
	}
	kittest.CheckGolden(t, "wrong.txt", all.String())
}

func TestBareHelpFlagOnEveryCommand(t *testing.T) {
	for _, arg := range []string{"--version", "version"} {
		if v := tierflow.Succeeds(t, arg); !strings.HasPrefix(v, "tierflow version ") {
			t.Errorf("%s prints %q", arg, v)
		}
	}
}
