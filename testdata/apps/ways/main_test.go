package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
)

// told is what users must see of a way to fail.
type told struct {
	own      string // rank 1's lines have it, or the launcher's
	others   string // and so has each line of another rank that ends
	launcher string // and so do the launcher's last lines
	ranks    string // a rank of a goroutine says it; empty: the way would end the test
}

// leaves is what others say of a rank that has ended in order. They may name a third rank,
// gone because of the first. Only the launcher follows that to the origin.
const leaves = "has closed, it won't come to "

var failures = map[string]told{
	"panic":  {own: "boom", others: "rank 1 panicked: boom", launcher: "rank 1 on", ranks: "rank 1 panicked: boom"},
	"error":  {own: "the disk is full", others: leaves, launcher: "the disk is full", ranks: "the disk is full"},
	"fatal":  {own: "the disk is full", others: "rank 1 failed", launcher: "the disk is full"},
	"exit":   {others: "rank 1 failed", launcher: "rank 1 on localhost: exit status 3"},
	"goexit": {others: "rank 1", launcher: "rank 1 on", ranks: "rank 1 ended its goroutine"},
	"kill":   {others: "rank 1 failed: was lost", launcher: "rank 1 on localhost: ended by signal: killed"},
	"abort":  {own: "aborted: the disk is full", others: "rank 1 aborted: the disk is full", launcher: "the disk is full", ranks: "rank 1 aborted: the disk is full"},
	"close":  {own: "closed", others: leaves, launcher: "rank 1", ranks: "rank 1 "}, // it won't come to call 1, or its call failed

	"late":    {others: "rank 1", launcher: "rank 1", ranks: "rank 1"},
	"stuck":   {own: "the disk is full", others: "missing=r1", launcher: "the disk is full", ranks: "the disk is full"},
	"cancel":  {own: "the disk is full", others: "rank 1 failed: the disk is full", launcher: "the disk is full", ranks: "rank 1 failed: the disk is full"},
	"ring":    {own: "deadlock", others: "deadlock", launcher: "deadlock", ranks: "deadlock"},
	"anybody": {others: "rank 1 failed: was lost", launcher: "rank 1 on localhost: ended by signal: killed"},

	"count": {own: "rank 1 runs allreduce 10 f32 sum", others: "rank 1 runs allreduce 10 f32 sum", launcher: "rank 1 runs allreduce 10 f32 sum", ranks: "rank 1 runs allreduce 10 f32 sum"},
	"op":    {own: "allreduce 2 i64 max", others: "allreduce 2 i64 max", launcher: "allreduce 2 i64 max", ranks: "allreduce 2 i64 max"},
	"root":  {own: "bcast 1000 i64 root 2", others: "bcast 1000 i64 root 2", launcher: "bcast 1000 i64 root 2", ranks: "bcast 1000 i64 root 2"},
	"type":  {own: "allreduce 2 f32 sum", others: "allreduce 2 f32 sum", launcher: "allreduce 2 f32 sum", ranks: "allreduce 2 f32 sum"},

	"nil":    {own: "the communicator is nil", others: leaves, launcher: "the communicator is nil", ranks: "the communicator is nil"},
	"length": {own: "3 elements to send, 4 to receive", others: leaves, launcher: "3 elements to send, 4 to receive", ranks: "3 elements to send, 4 to receive"},
	"noroot": {own: "root 7: ranks are 0 to 3", others: leaves, launcher: "root 7: ranks are 0 to 3", ranks: "root 7: ranks are 0 to 3"},
	"twice":  {own: "already started", others: leaves, launcher: "already started", ranks: "already started"},

	"op-panic":  {own: "the operation panicked: boom", others: "the operation panicked: boom", launcher: "the operation panicked: boom", ranks: "the operation panicked: boom"},
	"op-goexit": {own: "goroutine", others: "goroutine", launcher: "goroutine", ranks: "goroutine"},
	"op-calls":  {own: "is under way on this communicator, in its operation", others: "is under way on this communicator, in its operation", launcher: "is under way on this communicator, in its operation", ranks: "is under way on this communicator, in its operation"},
}

// built returns a folder with the command and the program.
func built(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), ".", "../../../cmd/tierflow").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// When a process fails, all ranks that still speak name the reason, and so do the launcher's last
// lines.
func TestProcesses(t *testing.T) {
	dir := built(t)
	for way, want := range failures {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(dir, "tierflow"), "run", "-n", "4", "--oversubscribe", "--", filepath.Join(dir, "ways"), way)
			cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TIERFLOW_") })
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || ctx.Err() != nil {
				t.Fatalf("the job ended with %v, %v:\n%s", err, ctx.Err(), out)
			}
			if err := want.check(string(out)); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// check returns what users don't see in the output of a job.
func (w told) check(out string) (err error) {
	own, last := "", ""
	for line := range strings.Lines(out) {
		switch rank, said, ok := strings.Cut(line, "] "); {
		case !ok || !strings.HasPrefix(rank, "["):
			last += line
		case rank == "[1":
			own += said
		case strings.Contains(said, "ways: ") && !strings.Contains(said, w.others) && w.others != "missing=r1":
			err = errors.Join(err, fmt.Errorf("rank %s doesn't say %q", rank[1:], w.others))
		}
	}
	if !strings.Contains(out, w.others) && w.others == "missing=r1" {
		err = errors.Join(err, fmt.Errorf("no rank says %q", w.others))
	}
	if !strings.Contains(own+last, w.own) { // the launcher may end it before it speaks
		err = errors.Join(err, fmt.Errorf("rank 1 doesn't say %q", w.own))
	}
	if !strings.Contains(last, w.launcher) {
		err = errors.Join(err, fmt.Errorf("the launcher doesn't say %q", w.launcher))
	}
	return err
}

// On goroutine ranks the same is in the first error, or in that of another rank.
func TestGoroutines(t *testing.T) {
	for way, want := range failures {
		if want.ranks == "" {
			continue
		}
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			errs := make([]error, 4)
			first := planner.Run(t.Context(), "4", options(way), func(ctx context.Context, c *planner.Comm) error {
				errs[c.Rank()] = fail(ctx, c, way)
				return errs[c.Rank()]
			})
			if err := errors.Join(append(errs, first)...); first == nil || !strings.Contains(err.Error(), want.ranks) {
				t.Errorf("no rank says %q: %v", want.ranks, err)
			}
		})
	}
}

// Each way is one that users must be told of.
func TestEachWay(t *testing.T) {
	for way := range ways {
		if _, ok := failures[way]; !ok {
			t.Errorf("nobody says what users see of %q", way)
		}
	}
}
