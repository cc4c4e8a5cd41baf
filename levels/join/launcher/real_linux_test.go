package launcher_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// These tests run testdata/rank under real launchers: four ranks, on this host or on
// the two nodes of an emulated cluster.

// program is the static binary of testdata/rank, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "rank")
	if err != nil {
		return "", err
	}
	rank := filepath.Join(dir, "rank")
	build := exec.Command("go", "build", "-o", rank, "./testdata/rank")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return rank, os.Chmod(dir, 0o755)
})

func TestMain(m *testing.M) {
	status := m.Run()
	if built {
		rank, _ := program()
		os.RemoveAll(filepath.Dir(rank))
	}
	os.Exit(status)
}

var built bool

func rankProgram(t *testing.T) string {
	t.Helper()
	built = true
	rank, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return rank
}

// tool skips the test where a program is missing, and says how to get it.
func tool(t *testing.T, name, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is missing: apt-get install -y --no-install-recommends %s", name, pkg)
	}
}

// outcome is what a launcher came to.
type outcome struct {
	status         int
	stdout, stderr string
	took           time.Duration
}

// launch runs a command line of a launcher, at most for a minute.
func launch(t *testing.T, env []string, line ...string) outcome {
	t.Helper()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !end.Stop() {
		t.Errorf("%q had to be killed", line)
	}
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), took: time.Since(began)}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		o.status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return o
}

var rankLine = regexp.MustCompile(`(?m)^rank (\d) of 4 on (\S+): largest 3, joined in ([0-9.]+) ms$`)

// setpgidWarning is what Open MPI's mpirun says of itself when its remote shell begins before mpirun has put it into a process
// group of its own. Both do that, and the job is healthy.
var setpgidWarning = regexp.MustCompile(`(?m)^\[\S+\] plm:rsh: Warning: setpgid\(.*\) failed in parent with errno=Permission denied\(13\)\n?`)

// healthy checks that four ranks have met on nodes as said, and that nobody warned.
func (o outcome) healthy(t *testing.T, topology string) {
	t.Helper()
	lines := rankLine.FindAllStringSubmatch(o.stdout, -1)
	ranks := map[string]bool{}
	var took []string
	for _, l := range lines {
		ranks[l[1]] = true
		took = append(took, l[3])
		if !regexp.MustCompile(topology).MatchString(l[2]) {
			t.Errorf("topology %s, want %s", l[2], topology)
		}
	}
	if o.status != 0 || len(ranks) != 4 {
		t.Errorf("status %d, ranks %v\n%s%s", o.status, ranks, o.stdout, o.stderr)
	}
	if said := setpgidWarning.ReplaceAllString(o.stderr, ""); strings.TrimSpace(said) != "" {
		t.Errorf("a healthy job says on standard error:\n%s", said)
	}
	t.Logf("joined in %s ms after sharing; %.1f s in all", strings.Join(took, ", "), o.took.Seconds())
}

// ended checks that a job failed with its rank, soon.
func (o outcome) ended(t *testing.T, limit time.Duration) {
	t.Helper()
	if o.status == 0 || o.took > limit {
		t.Errorf("status %d after %.1f s; want another than 0 in %v\n%s%s", o.status, o.took.Seconds(), limit, o.stdout, o.stderr)
	}
	if strings.Contains(o.stdout, "largest") {
		t.Errorf("a rank of a job that has lost one prints a result:\n%s", o.stdout)
	}
}

// deaths are the ways to die that testdata/rank knows.
var deaths = []string{"before", "in", "after", "fail"}

const oneNode = `^[^:]+:4$`

func TestHydra(t *testing.T) {
	tool(t, "mpiexec.hydra", "mpich")
	rank := rankProgram(t)
	if f, err := elf.Open(rank); err != nil || f.Section(".interp") != nil {
		t.Errorf("%s is not static (%v)", rank, err)
	}
	t.Run("sum", func(t *testing.T) { launch(t, nil, "mpiexec.hydra", "-n", "4", rank).healthy(t, oneNode) })
	t.Run("port", func(t *testing.T) {
		launch(t, nil, "mpiexec.hydra", "-pmi-port", "-n", "4", rank).healthy(t, oneNode)
	})
	for _, death := range deaths {
		t.Run(death, func(t *testing.T) { launch(t, nil, "mpiexec.hydra", "-n", "4", rank, death).ended(t, 25*time.Second) })
	}
	t.Run("never", func(t *testing.T) {
		if o := launch(t, nil, "mpiexec.hydra", "-n", "4", rank, "none"); o.status != 0 || o.stderr != "" {
			t.Errorf("%+v", o)
		}
	})
	t.Run("one comes late", func(t *testing.T) {
		o := launch(t, []string{"TIERFLOW_JOIN_TIMEOUT=1s"}, "mpiexec.hydra", "-n", "3", rank, ":", "-n", "1", "sleep", "20")
		if o.status == 0 || !strings.Contains(o.stderr, "join: PMI: barrier: not all 4 ranks came in") {
			t.Errorf("%+v", o)
		}
	})
}

// mpirun is Open MPI's, with what a test's machine needs.
func mpirun(more ...string) []string {
	return append([]string{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"}, more...)
}

func TestOpenMPI(t *testing.T) {
	tool(t, "mpirun.openmpi", "openmpi-bin")
	rank := rankProgram(t)
	t.Run("sum", func(t *testing.T) { launch(t, nil, mpirun("-n", "4", rank)...).healthy(t, oneNode) })
	for _, death := range deaths {
		t.Run(death, func(t *testing.T) { launch(t, nil, mpirun("-n", "4", rank, death)...).ended(t, 25*time.Second) })
	}
}

// TestNodes starts ranks on two nodes, from node 0.
func TestNodes(t *testing.T) {
	c := newCluster(t)
	rank := rankProgram(t)
	shell := c.remoteShell(t)
	t.Run("Hydra", func(t *testing.T) {
		tool(t, "mpiexec.hydra", "mpich")
		line := []string{"mpiexec.hydra", "-launcher", "rsh", "-launcher-exec", shell, "-hosts", "node0:2,node1:2", "-n", "4"}
		c.launch(t, nil, append(line, rank)...).healthy(t, "^2x2$")
		c.launch(t, nil, append(line, "-pmi-port", rank)...).healthy(t, "^2x2$")
		c.launch(t, nil, append(line, rank, "in")...).ended(t, 25*time.Second)
	})
	t.Run("Open MPI", func(t *testing.T) {
		tool(t, "mpirun.openmpi", "openmpi-bin")
		line := mpirun("--mca", "plm_rsh_agent", shell, "--host", "node0:2,node1:2", "-n", "4")
		c.launch(t, nil, append(line, rank)...).healthy(t, "^2x2$")
		c.launch(t, nil, append(line, rank, "in")...).ended(t, 25*time.Second)
	})
}

// cluster is an emulated one of two nodes.
type cluster struct{ name, script string }

// newCluster brings it up until the test ends, or skips where that can't be.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	script, err := filepath.Abs("../../../testdata/cluster/cluster")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{fmt.Sprintf("j%xc", os.Getpid()), script}
	out, err := exec.Command(script, "up", "2", "--rate", "none", "--name", c.name).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 {
		t.Skip(strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() {
		if out, err := exec.Command(script, "down", "--name", c.name).CombinedOutput(); err != nil {
			t.Errorf("cluster down: %v\n%s", err, out)
		}
	})
	if err != nil {
		t.Fatalf("cluster up: %v\n%s", err, out)
	}
	return c
}

// on returns a command line that runs another one on a node.
func (c *cluster) on(node string, line ...string) []string {
	return append([]string{c.script, "exec", "--name", c.name, node}, line...)
}

func (c *cluster) launch(t *testing.T, env []string, line ...string) outcome {
	t.Helper()
	return launch(t, env, c.on("0", line...)...)
}

// remoteShell writes a program with the manners of rsh.
func (c *cluster) remoteShell(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rsh")
	text := fmt.Sprintf("#!/bin/sh\nexec %s rsh --name %s \"$@\"\n", c.script, c.name)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
