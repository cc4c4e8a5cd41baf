package planner_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
)

// limited are programs that TestLimits runs in processes with a limit.
var limited = map[string]func(t *testing.T){
	"descriptors": func(t *testing.T) {
		limit(t, syscall.RLIMIT_NOFILE, 64, 64)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		cfg := join.Config{Rank: 0, Size: 200, Rendezvous: []string{"127.0.0.1:0"}, Secret: "a test"}
		if _, err := raw.JoinAs(ctx, cfg, nil); err != nil {
			t.Fatal(err)
		}
	},
	"soft limit": func(t *testing.T) {
		limit(t, syscall.RLIMIT_NOFILE, 16, 256)
		processes(t, 2, 2, nil, sum)
		t.Log("raised")
	},
	"address space": func(t *testing.T) {
		limit(t, syscall.RLIMIT_AS, 8<<30, 8<<30)
		processes(t, 2, 2, nil, sum)
		t.Log("smaller")
	},
	"heap": func(t *testing.T) {
		comms := localComms(t, "1", nil)
		defer closeAll(t, comms)
		limit(t, syscall.RLIMIT_AS, 8<<30, 8<<30)
		if _, err := planner.Alloc[byte](comms[0], 8<<30); err != nil {
			t.Fatal(err)
		}
	},
	"file size": func(t *testing.T) {
		limit(t, syscall.RLIMIT_FSIZE, 1<<20, 1<<20)
		joinProcesses(t, 2, 2, nil)
	},
}

func limit(t *testing.T, which int, soft, hard uint64) {
	t.Helper()
	if err := syscall.Setrlimit(which, &syscall.Rlimit{Cur: soft, Max: hard}); err != nil {
		t.Fatal(err)
	}
}

const limitedVariable = "PLANNER_TEST_LIMIT"

func TestLimited(t *testing.T) {
	f := limited[os.Getenv(limitedVariable)]
	if f == nil {
		t.Skip("TestLimits runs it in processes of its own")
	}
	f(t)
}

// A limit that is too low gives one clear line, at Join or at Alloc. It says what is needed and
// what is allowed; a soft one is raised.
func TestLimits(t *testing.T) {
	for name, want := range map[string]string{
		"descriptors":   "joining a job of 200 ranks as rank 0 needs 216 file descriptors and ",
		"soft limit":    "raised",
		"address space": "smaller",
		"heap":          "has no room for 8589934592 bytes more: ",
		"file size":     "sharing memory with the 2 ranks of a node takes a file of 17548KiB in memory; files are limited to 1MiB (ulimit -f)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLimited$", "-test.v")
			c.Env = append(os.Environ(), limitedVariable+"="+name)
			out, err := c.CombinedOutput()
			if (err == nil) != (want == "raised" || want == "smaller") || !strings.Contains(string(out), want) {
				t.Errorf("%v, said\n%s\nwant %s", err, out, want)
			}
			if name == "descriptors" && !strings.Contains(string(out), "the limit is 64, the hard limit 64 (ulimit -n)") {
				t.Errorf("said\n%s", out)
			}
		})
	}
}
