package launcher_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// slurm is a Slurm of two nodes on an emulated cluster.
type slurm struct {
	*cluster
	dir string
}

// newSlurm brings it up until the test ends.
func newSlurm(t *testing.T) *slurm {
	t.Helper()
	for _, name := range []string{"srun", "slurmctld", "slurmd", "munged", "setpriv"} {
		tool(t, name, "slurmctld slurmd slurm-client munge")
	}
	c := newCluster(t)
	dir, err := os.MkdirTemp("", "slurm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &slurm{c, dir}
	s.prepare(t)
	munge := filepath.Join(dir, "munge")
	s.daemon(t, "", "setpriv", "--reuid", "munge", "--regid", "munge", "--clear-groups", "munged", "-F",
		"--socket="+munge+"/socket", "--pid-file="+munge+"/pid", "--log-file="+munge+"/log", "--seed-file="+munge+"/seed")
	s.daemon(t, dir, s.on("0", "slurmctld", "-c", "-D")...)
	for _, node := range []string{"0", "1"} {
		s.daemon(t, filepath.Join(dir, node), s.on(node, "slurmd", "-D", "-N", "node"+node)...)
	}
	return s
}

// prepare writes configurations: one for all, and one for each node, whose PMIx server
// needs a folder of its own where nodes share /tmp.
func (s *slurm) prepare(t *testing.T) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(s.dir, 0o755))
	for _, sub := range []string{"state", "spool.node0", "spool.node1", "0/tmp", "1/tmp", "munge"} {
		must(os.MkdirAll(filepath.Join(s.dir, sub), 0o755))
	}
	if out, err := exec.Command("chown", "munge:munge", filepath.Join(s.dir, "munge")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, sub := range []string{".", "0", "1"} {
		for _, name := range []string{"slurm.conf", "cgroup.conf"} {
			text, err := os.ReadFile(filepath.Join("testdata/slurm", name))
			must(err)
			text = []byte(strings.ReplaceAll(string(text), "@DIR@", s.dir))
			must(os.WriteFile(filepath.Join(s.dir, sub, name), text, 0o644))
		}
		if sub != "." {
			text := "PMIxCliTmpDirBase=" + filepath.Join(s.dir, sub, "tmp") + "\n"
			must(os.WriteFile(filepath.Join(s.dir, sub, "mpi.conf"), []byte(text), 0o644))
		}
	}
}

// daemon runs a command line until the test ends, with the configuration in conf.
func (s *slurm) daemon(t *testing.T, conf string, line ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, filepath.Base(line[len(line)-1])+".out"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+filepath.Join(conf, "slurm.conf"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		kill := time.AfterFunc(5*time.Second, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		cmd.Wait()
		kill.Stop()
	})
}

// srun starts four ranks, two on a node.
func (s *slurm) srun(t *testing.T, env []string, line ...string) outcome {
	t.Helper()
	return s.allot(t, env, append([]string{"srun", "-Q", "-N2", "--ntasks-per-node=2"}, line...)...)
}

// allot runs a command line that asks this Slurm for nodes.
func (s *slurm) allot(t *testing.T, env []string, line ...string) outcome {
	t.Helper()
	return s.launch(t, append(env, "SLURM_CONF="+filepath.Join(s.dir, "slurm.conf")), line...)
}

// await waits until both nodes can be given.
func (s *slurm) await(t *testing.T) {
	t.Helper()
	clocktest.Until(t, "Slurm can give both nodes", func() bool {
		cmd := exec.Command(s.script, s.on("0", "sinfo", "-h", "-t", "idle", "-o", "%D")[1:]...)
		cmd.Env = append(os.Environ(), "SLURM_CONF="+filepath.Join(s.dir, "slurm.conf"))
		out, _ := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)) == "2"
	})
}

func TestSlurm(t *testing.T) {
	if os.Getenv("TIERFLOW_TEST_LONG") == "" {
		t.Skip("a Slurm of two nodes takes half a minute; TIERFLOW_TEST_LONG=1 runs it")
	}
	s := newSlurm(t)
	rank := rankProgram(t)
	tierflow := tierflowProgram(t)
	s.await(t)
	short := []string{"TIERFLOW_JOIN_TIMEOUT=3s", "TIERFLOW_SECRET=of-a-test,-which-is-long-enough"}
	for _, mpi := range []string{"pmi2", "pmix", "none"} {
		t.Run(mpi, func(t *testing.T) {
			var secret []string
			if mpi == "none" {
				secret = short[1:]
			}
			s.srun(t, secret, "--mpi="+mpi, rank).healthy(t, "^2x2$")
			s.allot(t, secret, "srun", "-Q", "-N1", "-n4", "-O", "--mpi="+mpi, rank).healthy(t, "^1x4$")
			for _, death := range deaths {
				if mpi == "none" && death == "in" {
					continue // nothing is shared
				}
				s.srun(t, short, "-K", "--mpi="+mpi, rank, death).ended(t, 25*time.Second)
			}
			o := s.srun(t, secret, "--mpi="+mpi, tierflow, "doctor")
			// Where two nodes share their processors it may find links slow, and say so.
			if !regexp.MustCompile(`(?ms)well.*: 4 ranks on 2 nodes.*^started by +(pmi|pmix|slurm)$`).MatchString(o.stdout) {
				t.Errorf("doctor: %+v", o)
			}
		})
	}
	t.Run("no secret", func(t *testing.T) {
		o := s.srun(t, nil, "--mpi=none", rank)
		if o.status == 0 || !strings.Contains(o.stderr, "TIERFLOW_SECRET is missing: export one before srun, or use srun --mpi=pmi2, which needs none") {
			t.Errorf("%+v", o)
		}
	})
	t.Run("tierflow run", func(t *testing.T) {
		s.allot(t, nil, "salloc", "-Q", "-N2", "--ntasks-per-node=2", tierflow, "run", "--no-prefix", "--", rank).healthy(t, "^2x2$")
	})
	t.Run("one task", func(t *testing.T) {
		o := s.allot(t, nil, "srun", "-Q", "-n1", rank)
		if o.status != 0 || !strings.HasPrefix(o.stdout, "rank 0 of 1 ") {
			t.Errorf("%+v", o)
		}
	})
}

// tierflowProgram builds the command where every user of the machine may run it.
func tierflowProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path := dir; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
		os.Chmod(path, 0o755)
	}
	build := exec.Command("go", "build", "-o", dir, "../../../cmd/tierflow")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "tierflow")
}
