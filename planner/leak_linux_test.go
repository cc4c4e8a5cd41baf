package planner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/planner"
)

// held is what a process holds.
type held struct{ descriptors, goroutines, mappings int }

func holds(t *testing.T) held {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return held{len(fds), runtime.NumGoroutine(), strings.Count(string(maps), "memfd:tierflow") + strings.Count(string(maps), "/job.")}
}

// over tells whether h is more than before anywhere.
func (h held) over(before held) bool {
	return h.descriptors > before.descriptors || h.goroutines > before.goroutines || h.mappings > before.mappings
}

// leavesNothing does something again and again, and complains of what is held then.
func leavesNothing(t *testing.T, cycles int, once func()) {
	t.Helper()
	before := holds(t)
	for range cycles {
		once()
	}
	var after held
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if clocktest.Await(ctx, func() bool { // goroutines that end by themselves
		after = holds(t)
		return !after.over(before)
	}) != nil {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// Joining and closing again and again leaves nothing behind: no descriptor, no
// goroutine, no mapping. Under TIERFLOW_TEST_LONG=1 it is a thousand times.
func TestJoinCloseLeavesNothing(t *testing.T) {
	cycles := map[string]int{"goroutines": 200, "processes": 30}
	if os.Getenv("TIERFLOW_TEST_LONG") == "1" {
		cycles = map[string]int{"goroutines": 1000, "processes": 1000}
	}
	o := &planner.Options{Recorder: filepath.Join(t.TempDir(), "job.%r"), DumpOnQuit: true}
	once := map[string]func(){
		"goroutines": func() {
			allSucceed(t, localComms(t, "2x2", o), sum)
		},
		"processes": func() { processes(t, 4, 2, o, sum) },
	}
	for _, kind := range []string{"goroutines", "processes"} {
		t.Run(fmt.Sprintf("%d %s", cycles[kind], kind), func(t *testing.T) {
			once[kind]() // what is made once, such as the runtime's poller
			leavesNothing(t, cycles[kind], once[kind])
		})
	}
}
