package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
)

// stuckRank is rank 1 of a job, which is killed while the others wait for it, or another one: they say so when they get SIGQUIT.
func stuckRank() error {
	ctx := context.Background()
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	if err := planner.Barrier(ctx, comm); err != nil {
		return err
	}
	if comm.Rank() == 1 {
		time.AfterFunc(2*time.Second, func() { kill(syscall.SIGKILL) })
		select {}
	}
	time.AfterFunc(time.Second, func() { kill(syscall.SIGQUIT) })
	fmt.Println(planner.Bcast(ctx, comm, make([]float32, 1<<20), 1))
	return nil
}

// kill sends a signal to this process.
func kill(s os.Signal) {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(s)
	}
}

// Stuck ranks print their open steps on SIGQUIT, and go on. A killed rank leaves its
// recording, and the dumps name it.
func TestPostMortem(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	dir := t.TempDir()
	t.Setenv("TIERFLOW_TEST_AGENT", "1") // see TestMain
	t.Setenv(env.Recorder, filepath.Join(dir, "job.%r"))
	t.Setenv(env.Dump, "1")
	s := tierflow.Run(t, "run", "-n", "3", "--oversubscribe", "--agent", os.Args[0], "--dump", filepath.Join(dir, "dumps"), "--", "env", "TIERFLOW_TEST_PROGRAM=stuck", os.Args[0])
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
