package planner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// explained joins processes of several nodes to which nothing is said of the machine, runs a
// bcast, and returns what rank 0 says of its plan. All ranks must have the same plan. Rank 0 says whether they are managed.
func explained(t *testing.T, n int, managed bool) string {
	t.Helper()
	comms := joinEach(t, n, func(r int) *planner.Options {
		return &planner.Options{Machine: planner.MachineAuto, Managed: managed == (r == 0)}
	}, onNodes(1))
	defer closeAll(t, comms)
	texts := make([]string, n)
	errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
		col, err := planner.PrepareBcast(ctx, c, make([]float32, 5<<10), 0)
		if err != nil {
			return err
		}
		texts[c.Rank()] = col.Explain()
		return col.Run(ctx)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	plan := func(text string) string {
		_, after, _ := strings.Cut(text, "plan: ")
		line, _, _ := strings.Cut(after, "\n")
		return line
	}
	for rank, text := range texts {
		if plan(text) != plan(texts[0]) {
			t.Errorf("rank %d has the plan %s, rank 0 %s", rank, plan(text), plan(texts[0]))
		}
	}
	return texts[0]
}

// kept lists the files of a kind that are kept.
func kept(t *testing.T, kind string) []string {
	t.Helper()
	folder, err := raw.KeptFolder(kind)
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Managed ranks to which nothing is said measure the machine once for the same nodes. They measure it again when
// the links have changed, or what is kept can't be read. Others measure and write nothing.
func TestMachineIsFound(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	if text := explained(t, 3, false); strings.Contains(text, "machine: ") || len(kept(t, raw.KeptMachines)) > 0 {
		t.Errorf("ranks that nobody manages have measured the machine, and keep %v:\n%s", kept(t, raw.KeptMachines), text)
	}
	if text := explained(t, 3, true); !strings.Contains(text, "machine: ranks, measured by pairs") {
		t.Fatalf("the first job has measured nothing:\n%s", text)
	}
	names := kept(t, raw.KeptMachines)
	if len(names) != 1 {
		t.Fatalf("kept are %v, want one machine", names)
	}
	info, err := os.Stat(names[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info.Mode(), err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	m, err := machine.Parse(names[0], data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Links {
		if l := &m.Links[i]; l.Level == 'i' {
			l.Latency = 50e6 // nobody's link
		}
	}
	changed, err := m.Format()
	if err != nil {
		t.Fatal(err)
	}
	for text, says := range map[string]string{string(changed): "the kept machine is another one now", "{": "rule: "} {
		if err := os.WriteFile(names[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := explained(t, 3, false)
		if left, err := os.ReadFile(names[0]); !strings.Contains(got, says) || strings.Contains(got, "measured by pairs") || string(left) != text {
			t.Errorf("ranks that nobody manages have a machine that is another one now, and leave %q, %v:\n%s", left, err, got)
		}
		if got := explained(t, 3, true); !strings.Contains(got, "machine: ranks, measured by pairs") {
			t.Errorf("a machine that is another one now was believed:\n%s", got)
		}
	}
	if explained(t, 2, true); len(kept(t, raw.KeptMachines)) != 2 {
		t.Errorf("kept are %v, want one for each number of nodes", kept(t, raw.KeptMachines))
	}
}

// A kept machine stays while messages take about as long as it says, and no longer. In a bubble they
// take no time, so a link must be too quick for a difference to count.
func TestKeptMachineIsUsed(t *testing.T) {
	for latency, stays := range map[time.Duration]bool{time.Microsecond: true, 10 * time.Microsecond: true, 20 * time.Microsecond: false} {
		synctest.Test(t, func(t *testing.T) {
			comms := localComms(t, "2x1", &planner.Options{Machine: planner.MachineOff})
			defer closeComms(comms)
			m := machine.Assumed()
			l := &m.Links[1]
			l.Latency, l.Send, l.Recv = float64(latency), 0, 0
			l.Byte, l.SendByte, l.RecvByte = 0.001, 0, 0
			data, err := m.Format()
			if err != nil {
				t.Fatal(err)
			}
			noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
				kept, err := c.EnterWith(ctx, data)
				if err == nil && kept != stays {
					err = fmt.Errorf("a machine with a latency of %v stays: %v, want %v", latency, kept, stays)
				}
				return err
			}))
		})
	}
}

// A job finds the machine kept for its ranks.
func TestKeptMachineIsFound(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	topo := tasktest.Topology(t, "2x1")
	file, found := planner.FindKept(topo)
	if found {
		t.Error("a machine is found that nobody has kept")
	}
	for ranks, want := range map[string]bool{"processes 2x1": true, "processes 1x2": false} {
		m := machine.Assumed()
		m.Provenance.Ranks = ranks
		data, err := m.Format()
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, found := planner.FindKept(topo); found != want {
			t.Errorf("one of %s is found: %v", ranks, found)
		}
	}
}

// Without a home, or with one that can't be written to, a job goes on with what it has measured.
func TestNoPlaceForMachines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"", file} {
		t.Setenv("XDG_CACHE_HOME", home)
		t.Setenv("HOME", home)
		if text := explained(t, 2, true); !strings.Contains(text, "machine: ranks, measured by pairs") {
			t.Errorf("with the home %q:\n%s", home, text)
		}
	}
}
