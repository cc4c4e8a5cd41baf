package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// stuck is a program whose rank 1 is killed while the others wait for it; they
// say so when they get SIGQUIT.
const stuck = `package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/planner"
)

func main() {
	ctx := context.Background()
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := planner.BarrierNow(ctx, comm); err != nil {
		log.Fatal(err)
	}
	if comm.Rank() == 1 {
		time.Sleep(2 * time.Second)
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	time.AfterFunc(time.Second, func() { syscall.Kill(os.Getpid(), syscall.SIGQUIT) })
	fmt.Println(planner.BcastNow(ctx, comm, make([]float32, 1<<20), 1))
}
`

// buildProgram builds a program in a folder and returns its path.
func buildProgram(t *testing.T, dir, text string) string {
	t.Helper()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "prog")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// Stuck ranks print their open steps on SIGQUIT, and go on. A killed rank leaves its
// recording, and the dumps name it.
func TestPostMortem(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	dir := t.TempDir()
	program := buildProgram(t, dir, stuck)
	t.Setenv("TIERFLOW_TEST_AGENT", "1") // see TestMain
	t.Setenv(planner.RecorderVariable, filepath.Join(dir, "job.%r"))
	t.Setenv(planner.DumpVariable, "1")
	s := tierflow.Run(t, "run", "-n", "3", "--oversubscribe", "--agent", os.Args[0], "--dump", filepath.Join(dir, "dumps"), "--", program)
	dump := regexp.MustCompile(`(?m)^\[(0|2)\] rank (0|2), bcast 1048576 f32 root 1: waits for .* since \d\.\d s: `)
	if s.Status != 128+9 || !dump.MatchString(s.Errors) {
		t.Errorf("status %d, said\n%s", s.Status, s.Errors)
	}
	const died = "died: rank 1 on localhost: ended by signal: killed (status 137)\n"
	if s := tierflow.Run(t, "diagnose", filepath.Join(dir, "dumps")); s.Status != 1 || !strings.HasPrefix(s.Out, died) {
		t.Errorf("diagnose: %+v, want %s", s, died)
	}
	text := tierflow.Succeeds(t, "trace", "--recorder", filepath.Join(dir, "job.1"), filepath.Join(dir, "job.0"), filepath.Join(dir, "job.2"))
	for _, want := range []string{
		`(?m)^rank 1: in no call, last seen at `,
		`(?m)^-\d\.\d{6}s +rank (0|2) +wait +for rank \d+`,
		`(?m)^-\d\.\d{6}s +rank 0 +begin +bcast 1048576 f32 root 1 #1`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
