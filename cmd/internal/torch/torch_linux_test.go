package torch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
)

// patience is after how long a program that runs is one that hangs.
const patience = 3 * time.Minute

var scratch string

func TestMain(m *testing.M) {
	os.Setenv("TIERFLOW_MACHINE", "off") // the plans are those of every machine, and nothing is kept
	os.Setenv("OMP_NUM_THREADS", "1")
	os.Setenv("PYTHONWARNINGS", "ignore")
	var err error
	if scratch, err = os.MkdirTemp("", "tierflow-torch"); err != nil {
		panic(err)
	}
	status := m.Run()
	if running != nil {
		running.end()
	}
	os.RemoveAll(scratch)
	os.Exit(status)
}

// errNoTorch says what is missing for the package.
var errNoTorch = errors.New("SKIPPED: there is no python3 with torch, its headers and a compiler")

// python has the Python for which the package is built, in scratch.
var python = sync.OnceValues(func() (string, error) {
	lib := filepath.Join(scratch, library)
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		b := builder{python: name, cxx: "c++", lib: lib, out: scratch}
		if _, err := exec.LookPath(b.cxx); err != nil {
			continue
		}
		if _, err := b.probe(context.Background()); err != nil {
			continue
		}
		out, err := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", lib, "../../libtierflow").CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("building the library: %w\n%s", err, out)
		}
		return name, b.build(context.Background())
	}
	return "", errNoTorch
})

// withTorch is the Python, or skips.
func withTorch(t *testing.T) string {
	t.Helper()
	name, err := python()
	if errors.Is(err, errNoTorch) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// command runs a program with the package, and kills it if it hangs.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), "PYTHONPATH="+scratch)
	return c
}

// server is ranks.py, which has loaded PyTorch and plays the ranks of one test after the other.
type server struct {
	cmd        *exec.Cmd
	asked      io.WriteCloser
	told       *bufio.Reader
	complaints bytes.Buffer
}

// running is the server, once it is started.
var running *server

// served starts the server, once.
var served = sync.OnceValues(func() (*server, error) {
	name, err := python()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.Command(name, "testdata/ranks.py")}
	s.cmd.Env = append(os.Environ(), "PYTHONPATH="+scratch)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Stderr = &s.complaints
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.told = bufio.NewReader(out)
	if s.asked, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	running = s
	return s, nil
})

// ask has a line of statuses for a line. If it doesn't come the server and all its ranks are killed.
func (s *server) ask(line string) (statuses []string, err error) {
	hangs := time.AfterFunc(patience, func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) })
	defer hangs.Stop()
	if _, err := io.WriteString(s.asked, line+"\n"); err != nil {
		return nil, err
	}
	text, err := s.told.ReadString('\n')
	return strings.Fields(text), err
}

// end ends the server.
func (s *server) end() {
	s.asked.Close()
	_ = s.cmd.Wait()
}

// ranks lets ranks.py play, and returns what each rank prints and how it ends.
func ranks(t *testing.T, what string, n int, seed string) (out []string, errs []error) {
	t.Helper()
	withTorch(t)
	s, err := served()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	of, err := s.ask(strings.Join([]string{what, "file://" + filepath.Join(dir, "store"), strconv.Itoa(n), seed, dir}, " "))
	if err != nil || len(of) != n {
		s.end()
		t.Fatalf("%v: %s %s", err, of, &s.complaints)
	}
	for r := range n {
		printed, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(r)))
		if err == nil && of[r] != "0" {
			err = errors.New("status " + of[r])
		}
		out, errs = append(out, string(printed)), append(errs, err)
	}
	return out, errs
}

// runAll runs the commands of so many ranks at once, and returns what each prints and how it ends.
func runAll(n int, of func(r int) *exec.Cmd) (out []string, errs []error) {
	out, errs = make([]string, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		c := of(r)
		all.Go(func() {
			b, err := c.CombinedOutput()
			out[r], errs[r] = string(b), err
		})
	}
	all.Wait()
	return out, errs
}

// Collectives of drawn tensors have Gloo's results, and a model trained by both has the same losses.
func TestLikeGloo(t *testing.T) {
	for _, test := range []struct {
		what  string
		ranks int
	}{{"collectives", 2}, {"collectives", 4}, {"training", 2}} {
		t.Run(fmt.Sprint(test.what, "/", test.ranks), func(t *testing.T) {
			seed := cmp.Or(os.Getenv("TIERFLOW_TEST_SEED"), fmt.Sprint(time.Now().UnixNano()%1000))
			t.Log("seed", seed)
			out, errs := ranks(t, test.what, test.ranks, seed)
			for r := range out {
				if errs[r] != nil || out[r] != "well\n" {
					t.Errorf("rank %d: %v\n%s", r, errs[r], out[r])
				}
			}
		})
	}
}

// An exception names the rank that is to blame, and why.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		what  string
		ranks []int    // of three, that complain of rank 1
		wants []string // what each says
	}{
		{"killed", []int{0, 2}, []string{"rank 1 failed", "its process ended"}},
		{"raising", []int{0, 2}, []string{"rank 1", "ends by ZeroDivisionError: of the test"}},
		{"late", []int{0, 1}, []string{"rank 1 has not come", "the limit of 3s"}},
		{"missing", []int{0, 2}, []string{"to join; missing: rank 1"}},
		{"disagreeing", []int{0, 1, 2}, []string{"ranks disagree", "rank 1 runs allreduce 5 f32 sum"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			out, errs := ranks(t, test.what, 3, "1")
			for r := range out {
				if errs[r] != nil && (r != 1 || slices.Contains(test.ranks, 1)) {
					t.Errorf("rank %d: %v\n%s", r, errs[r], out[r])
				}
			}
			for _, r := range test.ranks {
				if slices.ContainsFunc(test.wants, func(w string) bool { return !strings.Contains(out[r], w) }) {
					t.Errorf("rank %d: want %q\n%s", r, test.wants, out[r])
				}
			}
		})
	}
}

// Under torchrun ranks meet at its store. Without redirection torch 1.13 fails with Python 3.11.
func TestTorchrun(t *testing.T) {
	python := withTorch(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	out, err := command(t, python, "-m", "torch.distributed.run", "--nproc_per_node=2", "--redirects=1", "--tee=1", "--log_dir="+t.TempDir(), "--master_port="+port, "testdata/ranks.py", "training", "env://").CombinedOutput()
	if err != nil || strings.Count(string(out), "well\n") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

// What is missing is said, and what to install.
func TestComplaints(t *testing.T) {
	dir := t.TempDir()
	lib, without := filepath.Join(dir, "lib.so"), filepath.Join(dir, "python")
	for name, text := range map[string]string{
		lib: "", without: "#!/bin/sh\necho 'ModuleNotFoundError: No module named torch' >&2; exit 1\n",
		without + "-bare":   "#!/bin/sh\necho '{\"torch\": \"9.9\", \"distributed\": true, \"include\": [\"/nowhere\"]}'\n",
		without + "-single": "#!/bin/sh\necho '{\"torch\": \"9.9\"}'\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"--lib /nowhere.so":                                            "go build -buildmode=c-shared -o libtierflow.so",
		"--lib " + lib + " --cxx c++.of-nobody":                        "install a C++ compiler (g++)",
		"--lib " + lib + " --cxx true --python python.of-nobody":       "install Python (python3)",
		"--lib " + lib + " --cxx true --python " + without:             "No module named torch: install it (python3-torch",
		"--lib " + lib + " --cxx true --python " + without + "-bare":   "torch 9.9: there is no header ",
		"--lib " + lib + " --cxx true --python " + without + "-single": "built without torch.distributed",
	} {
		var complaints strings.Builder
		root := kit.NewRoot("tierflow", "", Command())
		status := kit.Execute(t.Context(), root, append([]string{"torch", "build", "--out", dir}, strings.Fields(line)...), nil, io.Discard, &complaints)
		if status != 1 || !strings.Contains(complaints.String(), want) {
			t.Errorf("%s: status %d, %q; want %q", line, status, &complaints, want)
		}
	}
}

// The example learns the same by both backends.
func TestExample(t *testing.T) {
	python, losses := withTorch(t), map[string]string{}
	for _, backend := range []string{"tierflow", "gloo"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		l.Close()
		out, errs := runAll(2, func(r int) *exec.Cmd {
			c := command(t, python, "example/train.py", "--backend", backend, "--steps", "20", "../../tierflow/guide")
			c.Env = append(c.Env, fmt.Sprint("RANK=", r), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port)
			return c
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%s: %v\n%s", backend, err, out)
		}
		losses[backend] = out[0][:strings.LastIndex(strings.TrimSpace(out[0]), "\n")+1] // without the time
	}
	if losses["tierflow"] != losses["gloo"] || !strings.HasPrefix(losses["gloo"], "step 10: ") {
		t.Errorf("tierflow's losses are\n%sGloo's\n%s", losses["tierflow"], losses["gloo"])
	}
}
