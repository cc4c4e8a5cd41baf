//go:build unix

package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/watch"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// optionsKey holds the Options of a launcher that is started as a process of its own, graceKey its termGrace if that
// is not to be the usual one.
const (
	optionsKey = "LAUNCH_TEST_OPTIONS"
	graceKey   = "LAUNCH_TEST_GRACE"
)

// TestMain lets the test binary play the other parts too: "agent" as Options.Agent's default asks for, "rank NAME args",
// "diagnose", and "launcher".
func TestMain(m *testing.M) {
	os.Setenv("TIERFLOW_MACHINE", "off") // the plans are those of every machine, and nothing is kept
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent":
			if err := Agent(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "rank":
			rankPrograms[os.Args[2]](os.Args[3:])
			os.Exit(0)
		case "diagnose":
			os.Exit(kit.Execute(context.Background(), kit.NewRoot("tierflow", "test", watch.DiagnoseCommand()), os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		case "launcher":
			var opts Options
			if err := json.Unmarshal([]byte(os.Getenv(optionsKey)), &opts); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			if grace := os.Getenv(graceKey); grace != "" {
				var err error
				if termGrace, err = time.ParseDuration(grace); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
			}
			status, err := Run(context.Background(), opts, os.Stdin, os.Stdout, os.Stderr)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			os.Exit(status)
		}
	}
	// A process under the race detector sleeps for a second when it exits, unless told not to.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	_ = flag.Set("test.parallel", "16") // jobs mostly wait
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) { // behind & or under nohup; what is caught here is at its default in launchers
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	status := m.Run()
	var left error
	if !poll(context.Background(), func() bool { left = goleak.Find(); return left == nil }) {
		fmt.Println(left)
		status = 1
	}
	os.Exit(status)
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// rankLine is the command line of a rank program of this binary.
func rankLine(t testing.TB, name string, args ...string) []string {
	return append([]string{self(t), "rank", name}, args...)
}

// result is what came of a Run.
type result struct {
	status         int
	err            error
	stdout, stderr bytes.Buffer
}

// run runs a job here, and checks what holds for every job.
func run(t *testing.T, opts Options) *result {
	t.Helper()
	return runContext(t, t.Context(), opts)
}

func runContext(t *testing.T, ctx context.Context, opts Options) *result {
	t.Helper()
	if opts.Timeout == 0 {
		opts.Timeout = forever
	}
	r := &result{}
	r.status, r.err = Run(ctx, opts, strings.NewReader(""), &r.stdout, &r.stderr)
	if (r.status == 0) != (r.err == nil) {
		t.Errorf("status %d with error %v", r.status, r.err)
	}
	return r
}

// want checks status and that the error's text has every part.
func (r *result) want(t *testing.T, status int, parts ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("status %d, want %d; error: %v\nstdout: %s\nstderr: %s", r.status, status, r.err, r.stdout.String(), r.stderr.String())
	}
	for _, part := range parts {
		if r.err == nil || !strings.Contains(r.err.Error(), part) {
			t.Errorf("error %q lacks %q", r.err, part)
		}
	}
}

// eventually polls check until it returns nil.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var err error
	if !poll(t.Context(), func() bool { err = check(); return err == nil }) {
		t.Errorf("after %v: %v", forever, err)
	}
}

// poll looks until something is so that tells nobody when it becomes so: what other processes do. It is false if that takes for
// ever, or ctx ends.
func poll(ctx context.Context, so func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, forever)
	defer cancel()
	return clocktest.Await(ctx, func() bool {
		if so() {
			return true
		}
		pause(4 * time.Millisecond) // a look at all processes of the machine is dear
		return false
	}) == nil
}

// pause is time that passes in a scenario of a test: how late a rank is, or how long a cable is out. No test passes because
// of how long one is.
func pause(d time.Duration) { clocktest.Pause(context.Background(), d) }

// readNumber sets a number that the environment may have under a name.
func readNumber[T int | uint64](t *testing.T, name string, to *T) {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		*to = T(n)
	}
}

// marked returns a word for command lines that no other process has.
func marked(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("processes are found through /proc, which only Linux has")
	}
	return fmt.Sprintf("mark-%d-%d", os.Getpid(), time.Now().UnixNano())
}

// processes returns the ids of processes whose command line has mark; the dead have no command line.
func processes(mark string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(mark)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// wantProcesses waits until n processes carry mark.
func wantProcesses(t *testing.T, mark string, n int) {
	t.Helper()
	eventually(t, func() error {
		if pids := processes(mark); len(pids) != n {
			return fmt.Errorf("processes %v, want %d", pids, n)
		}
		return nil
	})
}

// startLauncher starts a launcher as a process of its own.
func startLauncher(t *testing.T, opts Options) (*exec.Cmd, *buffer) {
	t.Helper()
	out := &buffer{}
	cmd := launcherCommand(context.Background(), t, opts, out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, out
}

// wantStatus waits for a launcher's end, which must have this exit status.
func wantStatus(t *testing.T, cmd *exec.Cmd, out *buffer, want int) {
	t.Helper()
	cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != want {
		t.Errorf("status %d, want %d\n%s", status, want, out)
	}
}

// launcherCommand returns the command of a launcher as a process of its own. The words before are a command that
// starts it; none: it starts by itself.
func launcherCommand(ctx context.Context, t testing.TB, opts Options, out *buffer, before ...string) *exec.Cmd {
	asJSON, err := json.Marshal(opts)
	check(err)
	words := append(before, self(t), "launcher")
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), optionsKey+"="+string(asJSON))
	cmd.Stdout, cmd.Stderr = out, out
	return cmd
}
