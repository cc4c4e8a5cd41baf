package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/executor/door"
)

// A file without end, or a far too large one, is an error of each command that reads one: it says what is
// allowed.
func TestFilesTooLarge(t *testing.T) {
	const zero = "/dev/zero"
	dir := t.TempDir()
	for _, name := range []string{"r0.trace", "r0.snap", "topo.json", "table.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, name), 1<<40); err != nil { // it takes no room
			t.Skip(err)
		}
	}
	for line, want := range map[string]string{
		"plan bcast --bytes 8 --topo 2 --machine /dev/zero":            zero + ": more than 32768 bytes; allowed are 32768",
		"plan bcast --bytes 8 --topo 2 --table " + dir + "/table.json": "table.json: 1099511627776 bytes; allowed are 268435456",
		"plan bcast --bytes 8 --topo " + dir + "/topo.json":            "topo.json: 1099511627776 bytes; allowed are ",
		"simulate bcast --topo 2 --machine /dev/zero":                  zero + ": more than 32768 bytes",
		"simulate train --topo 2 --layers /dev/zero":                   zero + ": more than ",
		"tune --profile /dev/zero":                                     zero + ": more than ",
		"trace --recorder /dev/zero":                                   zero + ": more than ",
		"trace --merge " + dir + " --format text":                      "r0.trace: 1099511627776 bytes; allowed are ",
		"diagnose " + dir:                                              "r0.snap: 1099511627776 bytes; allowed are ",
		"rules convert --from ompi /dev/zero":                          zero + ": more than ",
		"rules convert /dev/zero":                                      zero + ": more than 262144 bytes",
		"rules fmt /dev/zero":                                          zero + ": more than 262144 bytes",
		"rules explain /dev/zero bcast --bytes 8 --topo 2x2":           zero + ": more than 262144 bytes",
	} {
		s := tierflow.Run(t, strings.Fields(line)...)
		if s.Status == 0 || s.Out != "" || !strings.Contains(s.Errors, want) {
			t.Errorf("tierflow %s: %+v; want %q", line, s, want)
		}
	}
}

// Standard output that can't be written is an error of each command.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	t.Setenv("TIERFLOW_TEST_AGENT", "1") // for run
	for line, status := range map[string]int{
		"--help": 1, "--version": 1, "info": 1, "plan bcast --bytes 8 --topo 2": 1, "verify bcast --topo 2": 1, "rules show": 1,
		"simulate bcast --topo 2": 1, "ps": 1, "completion bash": 1, "run -n 2 -- echo said": 125,
	} {
		var errors strings.Builder
		got := kit.Execute(t.Context(), tierflow(), strings.Fields(line), strings.NewReader(""), full, &errors)
		if got != status || !strings.Contains(errors.String(), "no space left on device") || strings.Count(errors.String(), "\n") != 1 {
			t.Errorf("tierflow %s: status %d, want %d: %s", line, got, status, errors.String())
		}
	}
}

// The folder of a user's jobs made by another user is said.
func TestForeignDoor(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	const uid = 1_054_321
	folder := door.Folder("")
	folder = strings.TrimSuffix(folder, "-0") + "-" + strconv.Itoa(uid)
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := os.Remove(folder); err != nil {
			t.Error(err)
		}
	}()
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "ps") // its folders may be closed to that user
	c.Dir, c.Env = "/", []string{"TIERFLOW_TEST_COMMAND=1"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), folder+" belongs to another user") || !strings.Contains(string(out), "TIERFLOW_DOOR") {
		t.Errorf("%v: %s", err, out)
	}
}
