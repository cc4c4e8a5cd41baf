package disturb

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// A process that is disturbed is stopped at times and goes on.
func TestDisturb(t *testing.T) {
	if pid := os.Getenv("TIERFLOW_TEST_DISTURB"); pid != "" {
		n := Noise{Lasting: 5 * time.Millisecond, Share: 0.5}
		parent, err := strconv.Atoi(pid)
		if err == nil {
			err = n.stopAtTimes(t.Context(), parent)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("the state of a process is read from /proc")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	// The shell starts the test again as its child, and then becomes a sleeper.
	victim := exec.CommandContext(ctx, "/bin/sh", "-c", `TIERFLOW_TEST_DISTURB=$$ "$0" -test.run '^TestDisturb$' >&2 & exec sleep 20`, os.Args[0])
	var complaints strings.Builder
	victim.Stderr = &complaints
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	seen := map[bool]int{} // by whether it is stopped
	if clocktest.Await(ctx, func() bool {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(victim.Process.Pid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(state), ") ")
		seen[strings.HasPrefix(after, "T")]++
		return seen[true] >= 3 && seen[false] >= 3
	}) != nil {
		t.Errorf("stopped and running seen %v times", seen)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It returns when the disturber has ended too, which has the same standard error.
	if err := victim.Wait(); err == nil || strings.Contains(complaints.String(), "FAIL") {
		t.Errorf("%v, %s", err, &complaints)
	}
}

// What cannot be disturbed says why.
func TestDisturbArguments(t *testing.T) {
	for _, name := range rankVariables {
		t.Setenv(name, "")
	}
	b := &disturbing{noise: Noise{time.Millisecond, 0.1}}
	if err := b.start([]string{"true"}); err == nil || !strings.Contains(err.Error(), "no rank of a job") {
		t.Errorf("outside a job: %v", err)
	}
	t.Setenv("PMI_RANK", "x")
	if err := b.start([]string{"true"}); err == nil || !strings.Contains(err.Error(), `PMI_RANK="x"`) {
		t.Errorf("with a broken rank: %v", err)
	}
	t.Setenv("PMI_RANK", "1")
	if err := b.start([]string{"/no/such/program"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a program: %v", err)
	}
	if err := continueProcess(1<<22 + 1); err != nil {
		t.Errorf("a process that is gone: %v", err)
	}
}
