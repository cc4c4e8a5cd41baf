package agree

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// bugs are mistakes in machine.go that an exploration must find: texts, and what they become.
var bugs = []struct{ name, right, wrong string }{
	{"accepts any ballot", "case msg.Ballot.less(m.promised):\n\t\tcase d.Members.Without(news).Count() < d.Members.Count():", "case d == nil && news == nil:"},
	{"decides what it has proposed", "if m.accepters.Includes(living) {", "if true {"},
	{"tells no decision", "m.send(Message{Kind: Decide, To: to, Value: m.decided})", ""},
	{"ignores the lost ranks of others", "\tm.addLost(msg.Lost, false)\n\tm.addLost(msg.Proven, true)\n", ""},
	{"a majority of the living is enough", "return Quorum(m.config.Size, m.living(), m.proven)", "return 2*m.living().Count() > m.config.Size-m.lost.Count()"},
	{"half without rank 0 is enough", "return Quorum(m.config.Size, m.living(), m.proven)", "return 2*m.living().Count() >= m.config.Size || Quorum(m.config.Size, m.living(), m.proven)"},
	{"proposes twice under a ballot", "\t\tm.count++\n\t\tm.accepters = nil\n", "\t\tif m.count == 0 {\n\t\t\tm.count++\n\t\t\tm.accepters = nil\n\t\t}\n"},
	{"a vote lacks the accepted value", ", Ballot: m.accepted, Value: m.value}", "}"},
	{"late votes replace others", "\tt.voters = t.voters.With(msg.From)\n", "\tif t.voters.Count() > 1 {\n\t\tt.voters = nil\n\t}\n\tt.voters = t.voters.With(msg.From)\n"},
	{"passes no decision on", "\t\tm.passOn(msg.From)\n", ""},
	{"who is left out suspects who says so", "\tcase msg.Left.Has(m.config.Rank):\n\t\tm.abstain(msg.From)\n", ""},
	{"who is left out tells nobody", "Without(Of(m.config.Rank, by)).Ranks()", "Without(All(m.config.Size)).Ranks()"},
	{"who is left out is asked by others", "\tm.left = m.left.Union(msg.Left)\n", ""},
}

// The exploration finds each bug: the package is compiled with it, and TestAllStates fails.
func TestBugsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the package for each bug")
	}
	here, err := filepath.Abs("machine.go")
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(here)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	for i, bug := range bugs {
		if strings.Count(string(src), bug.right) != 1 {
			t.Errorf("%s: machine.go has not once: %q", bug.name, bug.right)
			continue
		}
		dir := filepath.Join(t.TempDir(), string(rune('a'+i)))
		wrong := filepath.Join(dir, "machine.go")
		overlay, _ := json.Marshal(map[string]map[string]string{"Replace": {here: wrong}})
		for name, data := range map[string][]byte{wrong: []byte(strings.Replace(string(src), bug.right, bug.wrong, 1)), filepath.Join(dir, "overlay.json"): overlay} {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), "go", "test", "-failfast", "-vet=off", "-count=1", "-overlay", filepath.Join(dir, "overlay.json"), "-run", "^TestAllStates$", ".")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestAllStates") {
				t.Errorf("%s: not found: %v\n%s", bug.name, err, out)
			}
		})
	}
}
