package profile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/planner/profile"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// What is written is read again, and says what was called.
func TestRead(t *testing.T) {
	on := tasktest.Topology(t, "4x2")
	p := &profile.Profile{Version: profile.Version, Program: "train", Machine: on.String(), Seconds: 9}
	uneven, err := tasks.MakeUneven(tasks.Request{Coll: tasks.Alltoall, Type: tasks.Float32, Count: 50}, 4, on.Size())
	if err != nil {
		t.Fatal(err)
	}
	all := []tasks.Request{
		uneven,
		{Coll: tasks.Barrier},
		{Coll: tasks.Allreduce, Type: tasks.Float64, Count: 100, Op: tasks.Max},
		{Coll: tasks.Bcast, Type: tasks.Uint8, Count: 7},
	}
	for i, r := range all {
		c := profile.Of(r, on, tasks.Plan{Shape: tasks.Flat})
		c.Calls, c.Seconds = 3, float64(9-i)
		p.Calls = append(p.Calls, c)
	}
	data, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "calls.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := profile.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Error(diff)
	}
	for i, r := range all {
		if asked, err := got.Calls[i].Request(); err != nil || asked != r {
			t.Errorf("%+v: %v, %v; want %v", got.Calls[i], asked, err, r)
		}
	}
}

// A summary adds up plans, and has the longest first.
func TestText(t *testing.T) {
	p := &profile.Profile{Program: "solve", Seconds: 10, Calls: []profile.Call{
		{Collective: "allreduce", Type: "f64", Op: "sum", Count: 1 << 16, Bytes: 1 << 19, On: "4x2", Plan: "shape=flat", Calls: 100, Seconds: 1},
		{Collective: "barrier", On: "4x2", Calls: 4, Seconds: 2e-6},
		{Collective: "allgather", Type: "u8", Count: 100, Bytes: 100, Differ: true, On: "4", Calls: 10, Seconds: 1.5},
		{Collective: "allreduce", Type: "f64", Op: "sum", Count: 1 << 16, Bytes: 1 << 19, On: "4x2", Plan: "shape=han", Calls: 100, Seconds: 3},
	}}
	const want = `tierflow: rank 0 of solve was in collectives for 5.500 of 10.000 s, 55 %, waits for late ranks included
tierflow:   collective     type  op        bytes     calls          s  share       mean  on
tierflow:   allreduce      f64   sum      512KiB       200      4.000   40 %       20ms  4x2
tierflow:   allgather      u8    -         ≤100B        10      1.500   15 %      150ms  4
tierflow:   barrier        -     -            0B         4      0.000    0 %      500ns  4x2
`
	if diff := cmp.Diff(want, p.Text()); diff != "" {
		t.Error(diff)
	}
}

// What can't be tuned for is said: blocks that differ, a program's own operation.
func TestRequestOfNone(t *testing.T) {
	for _, c := range []struct {
		call profile.Call
		want string
	}{
		{profile.Call{Collective: "gather", Type: "f32", Differ: true}, "gather of blocks that differ, and nobody knows by how much"},
		{profile.Call{Collective: "allreduce", Type: "f32", Op: "mine"}, "mine"},
		{profile.Call{Collective: "dance"}, "dance"},
		{profile.Call{Collective: "bcast", Type: "f31"}, "f31"},
	} {
		if _, err := c.call.Request(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.call, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.json")
	for text, want := range map[string]string{
		`{"tierflow_profile":2}`:                                               "tierflow_profile is 2; allowed is 1",
		`{"tierflow_profile":1,"calls":[{"collective":"dance"}]}`:              "call 0: unknown collective",
		`{"tierflow_profile":1,"calls":[{"collective":"barrier","calls":-1}]}`: "call 0: -1 calls",
		`[]`: "cannot unmarshal",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := profile.Read(file); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), file) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}
