package mpi

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/cmd/internal/watch"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// While rank 1 of an MPI program keeps the others waiting, ps says in what and where, and the time counts as theirs: in
// calls of tierflow, in those passed on, and in messages.
func TestSeenFromOutside(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		dir, err := os.MkdirTemp("", "mpi") // a socket's name is short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		t.Setenv("TIERFLOW_DOOR", filepath.Join(dir, "doors"))
		t.Setenv("TIERFLOW_MANAGED", "1")
		prog := mpi.program(t, "late")
		ended := make(chan string, 1)
		go func() {
			out, err := mpi.under(t, shim, nil, prog, dir)
			ended <- fmt.Sprint(out, err)
		}()
		tierflow := kittest.Runner(func() *cobra.Command {
			return kit.NewRoot("tierflow", "test", watch.PsCommand(), watch.MetricsCommand())
		})
		seen := ""
		until := func(what string, command string, is func(out string) bool) {
			clocktest.Until(t, what, func() bool {
				if len(ended) > 0 {
					t.Fatalf("the job ends before: %s\n%s\n%s", what, seen, <-ended)
				}
				clocktest.Pause(t.Context(), 50*time.Millisecond) // asking takes the ranks' time
				seen = tierflow.Succeeds(t, command)
				return is(seen)
			})
		}
		for _, call := range []struct{ name, waiter, late string }{
			{"taken", `allreduce 1 i32 sum #98 +1 `, `in no call after allreduce 1 i32 sum #97 `},
			{"passed-on", `in MPI_Allreduce \(passed on\) `, `in no call after allreduce 1 i32 sum #98 `},
			{"message", `in MPI_Recv \(passed on\) `, `in no call `},
			{"started", `allreduce 1 i32 sum #99 +1 `, `in no call `},
			{"any", `in MPI_Waitany \(passed on\) `, `in no call `},
			{"end", `in MPI_Finalize \(passed on\) `, `in no call `},
		} {
			const place = `.* main late\.c:\d+`
			row := regexp.MustCompile(`(?m)^0 +\S+ +\d+ +` + call.waiter + place + `$(.|\n)*^1 +\S+ +\d+ +` + call.late + place + ` \(after the call\)$`)
			until("ps shows "+call.waiter+" and "+call.late, "ps", row.MatchString)
			var before, now [2]string
			until("metrics know both ranks", "metrics", func(out string) bool {
				before = waits(out)
				return before[0] != "" && before[1] != ""
			})
			until("the time of rank 0 counts as waiting", "metrics", func(out string) bool {
				now = waits(out)
				return now[0] != "" && now[1] != "" && now[0] != before[0]
			})
			if now[1] != before[1] {
				t.Errorf("%s: rank 1, which is late, has waited %s s, and then %s", call.name, before[1], now[1])
			}
			if call.name == "taken" {
				checkBacktrace(t, shim, regexp.MustCompile(`(?m)^0 +\S+ +(\d+) `).FindStringSubmatch(tierflow.Succeeds(t, "ps"))[1])
			}
			if call.name == "taken" && !strings.Contains(seen, `collective="allreduce"`) {
				t.Errorf("metrics have no allreduce:\n%s", seen)
			}
			if err := os.WriteFile(filepath.Join(dir, call.name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, want := <-ended, fmt.Sprintf("late: %d ranks\n", mpi.ranks); !strings.Contains(out, want) {
			t.Errorf("want %q:\n%s", want, out)
		}
	})
}

// waited is a rank's line in metrics.
var waited = regexp.MustCompile(`(?m)^tierflow_waited_seconds_total\{.*rank="([01])"\} (.*)$`)

// waits returns how long ranks 0 and 1 have waited; empty: unknown.
func waits(metrics string) (of [2]string) {
	for _, line := range waited.FindAllStringSubmatch(metrics, -1) {
		of[line[1][0]-'0'] = line[2]
	}
	return of
}

// checkBacktrace lets gdb look at a rank that waits in tierflow: it shows the program's frames.
func checkBacktrace(t *testing.T, shim, pid string) {
	t.Helper()
	if _, err := exec.LookPath("gdb"); err != nil || runtime.GOARCH != "amd64" {
		t.Logf("no look by gdb: %v on %s", err, runtime.GOARCH)
		return
	}
	out, err := exec.Command("gdb", "-batch", "-nx", "-x", shim+forDebugger, "-p", pid, "-ex", "bt").CombinedOutput()
	if bytes.Contains(out, []byte("Operation not permitted")) {
		t.Log("no look by gdb: it is not permitted")
		return
	}
	if !regexp.MustCompile(`(?m)^#\d+ .* main \(.*\) at .*late\.c:\d+$`).Match(out) {
		t.Errorf("gdb shows no frame of main: %v\n%s", err, out)
	}
}
