package planner_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// machineData returns the file of a machine whose links between nodes are slow.
func machineData(t *testing.T) []byte {
	t.Helper()
	m := machine.Assumed()
	for i := range m.Links {
		if l := &m.Links[i]; l.Level == 'i' {
			l.Byte = 80
		}
	}
	data, err := m.Format()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// chainless is a request that on four nodes the built-in rule gives a chain, and prices do not.
var chainless = tasks.Request{Coll: tasks.Bcast, Type: tasks.Float32, Count: 8 << 10}

// On a known machine the cheapest plan is chosen, unless another one is forced or a table
// has an answer. Explain says what the others cost.
func TestPricesDecide(t *testing.T) {
	on := tasktest.Topology(t, "4x1")
	ruled, err := planner.Decide(chainless, on, nil)
	if err != nil {
		t.Fatal(err)
	}
	known := &planner.Options{Machine: "machine", Files: inMemory("machine", machineData(t))}
	got, err := planner.Decide(chainless, on, known)
	if err != nil || got.Equal(ruled) {
		t.Fatalf("%v, %v; the rule chooses the same", got, err)
	}
	text, err := planner.Explain(chainless, on, known)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "Explain", text,
		"machine: machine, assumed", "price: ", "less than that of the rule's plan "+ruled.String(),
		"runner-up: ", "% more: its ib takes ", "  task ib: ", "counted over the links above",
	)
	forced, err := planner.Decide(chainless, on, &planner.Options{Machine: "machine", Files: known.Files, Plan: "i=adapt/chain"})
	if choice, _ := forced.Choice("i"); err != nil || choice.String() != "adapt/chain" || forced.Equal(ruled) {
		t.Errorf("forced i=adapt/chain: %v, %v; the rule's plan has it too, and prices know a cheaper one with it than %v", forced, err, ruled)
	}
	if same, err := planner.Decide(chainless, on, &planner.Options{Machine: "machine", Files: known.Files, Plan: got.String()}); err != nil || !same.Equal(got) {
		t.Errorf("forced as it is chosen anyway: %v, %v; want %v", same, err, got)
	}
}

// On numbers that were measured in a hurry the rule's plan stays where it is too large to be simulated,
// and Explain says so. On others, and where it can be simulated, prices choose.
func TestRuleIsTooLarge(t *testing.T) {
	const says = "too large to be simulated"
	for _, tc := range []struct {
		method, on string
		large      bool
	}{
		{planner.Hastily + "20ms", "64x16", true},
		{planner.Hastily + "20ms", "4x1", false},
		{"by p2p", "64x16", false},
	} {
		on := tasktest.Topology(t, tc.on)
		m := machine.Assumed()
		m.Provenance.Method = tc.method
		data, err := m.Format()
		if err != nil {
			t.Fatal(err)
		}
		r := tasks.Request{Coll: tasks.Allgather, Count: 1 << 18, Type: tasks.Float32}
		text, err := planner.Explain(r, on, &planner.Options{Machine: "machine", Files: inMemory("machine", data)})
		if err != nil || strings.Contains(text, says) != tc.large {
			t.Errorf("%+v: %v\n%s", tc, err, text)
		}
	}
}

// Rank 0's machine holds for all ranks, and for communicators that are made from theirs.
func TestMachineIsAgreed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine.json")
	if err := os.WriteFile(file, machineData(t), 0o644); err != nil {
		t.Fatal(err)
	}
	comms, errs := joinWith(t, 1, &planner.Options{Machine: file}, nil, nil, &planner.Options{Machine: "/no/such/file"})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, comms)
	on := tasktest.Topology(t, "4x1")
	want, err := planner.Decide(chainless, on, &planner.Options{Machine: file})
	if err != nil {
		t.Fatal(err)
	}
	for rank, c := range comms {
		if got, err := c.Decide(chainless); err != nil || !got.Equal(want) {
			t.Errorf("rank %d decides %v, %v; want %v", rank, got, err, want)
		}
	}
	if text, err := planner.Explain(chainless, on, &planner.Options{Machine: planner.MachineOff}); err != nil || strings.Contains(text, "machine: ") {
		t.Errorf("off: %v\n%s", err, text)
	}
}

// A plan of the rule without a price, too large to simulate, is named as one, not compared.
func TestRuleWithoutPrice(t *testing.T) {
	file, err := machine.Assumed().Format()
	if err != nil {
		t.Fatal(err)
	}
	on := tasktest.Topology(t, "120x2x4")
	r := tasks.Request{Coll: tasks.Alltoall, Type: tasks.Float32, Count: 4}
	text, err := planner.Explain(r, on, &planner.Options{Machine: "machine", Files: inMemory("machine", file)})
	if err != nil || !strings.Contains(text, "s=sm has none\n") || !strings.Contains(text, "runner-up: ") {
		t.Errorf("%v\n%s", err, text)
	}
}

// What is no machine, or lacks a link, is one clear error.
func TestMachineRefused(t *testing.T) {
	nodeOnly := machine.Assumed()
	nodeOnly.Links = nodeOnly.Links[:1]
	linkless, err := nodeOnly.Format()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		o    planner.Options
		want string
	}{
		{planner.Options{Machine: "/no/such/file"}, "Options.Machine: open /no/such/file: no such file or directory; allowed are a machine's file"},
		{planner.Options{Machine: "machine", Files: inMemory("machine", []byte("{}"))}, `Options.Machine: machine:1: key "version" is missing`},
		{planner.Options{Machine: "machine", Files: inMemory("machine", make([]byte, 1<<20))}, "Options.Machine: read machine: 1048576 bytes; allowed are 32768"},
		{planner.Options{Machine: "x", Files: inMemory("machine", []byte("{}"))}, "Options.Machine: open x: no such file"},
		{planner.Options{Machine: "machine", Files: inMemory("machine", linkless)}, "machine: price on 2x1: machine: no link for level i/network; there are links for s"},
	} {
		wantError(t, fmt.Sprintf("%+v", tc.o), second(planner.Local("2x1", &tc.o)), tc.want)
	}
	large := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(large, make([]byte, machine.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "too large", second(planner.Local("2x1", &planner.Options{Machine: large})), "m.json: 32769 bytes; allowed are 32768")
	t.Setenv(env.Machine, "/no/such/file")
	wantError(t, "no such file", second(planner.Local("2x1", nil)), "TIERFLOW_MACHINE: open /no/such/file")
}
