package planner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// readTraces reads the files of n ranks.
func readTraces(t *testing.T, dir string, n int) (all []*trace.File) {
	t.Helper()
	for r := range n {
		name := filepath.Join(dir, fmt.Sprintf("r%d.trace", r))
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := trace.ReadFile(name, data)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// checkWhole wants each traced call on all its members with all steps of its programs.
func checkWhole(t *testing.T, files []*trace.File, least int) {
	t.Helper()
	type key struct {
		comm uint64
		seq  uint32
	}
	seen := map[key]int{}
	calls := 0
	for _, f := range files {
		if _, err := time.Parse(time.RFC3339, f.Date); err != nil || f.Program != filepath.Base(os.Args[0]) {
			t.Errorf("rank %d is of %q at %q: %v", f.Rank, f.Program, f.Date, err)
		}
		for _, c := range f.Calls {
			k := f.Kinds[c.Kind]
			if _, err := tasks.ParseCollective(strings.Fields(k.Request)[0]); err == nil && (len(k.Reasons) == 0 || k.Bytes == 0) {
				t.Errorf("rank %d, %s of %d bytes: %s, because of %q", f.Rank, k.Request, k.Bytes, k.Plan, k.Reasons)
			}
			want := 0
			if k.Whole >= 0 {
				want += int(k.Passes) * len(f.Programs[k.Whole])
			}
			if k.Rest >= 0 {
				want += len(f.Programs[k.Rest])
			}
			if len(c.Steps) != want {
				t.Errorf("rank %d, %s #%d: %d steps, want %d", f.Rank, k.Request, c.Seq, len(c.Steps), want)
			}
			for _, s := range c.Steps {
				if s[2] < c.Begin || s[3] > c.End {
					t.Errorf("rank %d, %s #%d: step %v outside of %d to %d", f.Rank, k.Request, c.Seq, s, c.Begin, c.End)
				}
			}
			at := key{k.Comm, c.Seq}
			if _, known := seen[at]; !known {
				seen[at] = len(k.Members)
				calls++
			}
			seen[at]--
		}
	}
	for at, missing := range seen {
		if missing != 0 {
			t.Errorf("call %d of communicator %x: %d ranks have not kept it", at.seq, at.comm, missing)
		}
	}
	if calls < least {
		t.Errorf("%d calls were kept, want %d at least", calls, least)
	}
}

// All ranks keep the same calls, each whole, also those of smaller communicators.
func TestTrace(t *testing.T) {
	const calls, every = 32, 4
	for name, join := range map[string]func(t *testing.T, o *planner.Options) []*planner.Comm{
		"goroutines": func(t *testing.T, o *planner.Options) []*planner.Comm {
			comms := localComms(t, "2x2", o)
			return comms
		},
		"processes": func(t *testing.T, o *planner.Options) []*planner.Comm { return joinProcesses(t, 4, 2, o) },
		"one node":  func(t *testing.T, o *planner.Options) []*planner.Comm { return joinProcesses(t, 2, 2, o) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "traces")
			comms := join(t, &planner.Options{Trace: fmt.Sprintf("%s:every=%d", dir, every)})
			var g errgroup.Group
			for _, c := range comms {
				g.Go(func() error {
					small, large := make([]float32, 16), make([]float32, 50_000)
					half, err := c.Split(t.Context(), c.Rank()%2, 0)
					if err != nil {
						return err
					}
					for range calls {
						if err := planner.Allreduce(t.Context(), c, small, small, tasks.Sum); err != nil {
							return err
						}
						if err := planner.Allreduce(t.Context(), half, large, large, tasks.Max); err != nil {
							return err
						}
					}
					return c.Close()
				})
			}
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
			files := readTraces(t, dir, len(comms))
			checkWhole(t, files, calls/every)
			for _, f := range files {
				if f.Clock != files[0].Clock || len(f.Ahead.Fixes) > 0 || f.Job != files[0].Job || f.Every != every || len(f.Nodes) != len(comms) {
					t.Errorf("rank %d: clock %s, fixes %v, job %s, nodes %v", f.Rank, f.Clock, f.Ahead, f.Job, f.Nodes)
				}
			}
		})
	}
}

func TestTraceSetting(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		dir + ":every=0":         "allowed are a folder, and a folder with :every=1 to :every=1048576",
		dir + ":every=x":         "allowed are",
		":every=4":               "names no folder",
		dir + ":every=1048577":   "allowed are",
		filepath.Join(dir, "a/"): "",
	} {
		t.Setenv(env.Trace, text)
		comms, err := planner.Local("2", nil)
		if want == "" {
			for _, c := range comms {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			readTraces(t, text, 2)
		}
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), env.Trace)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
