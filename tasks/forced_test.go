package tasks_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

func TestForced(t *testing.T) {
	for _, tc := range []struct {
		forced           string
		bcast, allreduce string
	}{
		{"", "", ""},
		{" ; ;", "", ""},
		{"shape=flat", "shape=flat", "shape=flat"},
		{"allreduce:shape=flat;w=8", "w=8", "shape=flat,w=8"},
		{" allreduce : shape=flat ; w=8 ", "w=8", "shape=flat,w=8"},
		{"w=1;bcast:w=2;w=3,fs=1;allreduce:w=4", "fs=1B,w=3", "fs=1B,w=4"}, // later wins
		{"ib=adapt;allreduce:i=sm", "ib=adapt", "i=sm"},
		{"barrier:w=2;bcast:", "", ""},
		{"shape=rsag,fs=1;w=2", "w=2", "shape=rsag,fs=1B,w=2"}, // no bcast has that shape
	} {
		f, err := tasks.ParseForced(tc.forced)
		if err != nil {
			t.Errorf("%q: %v", tc.forced, err)
			continue
		}
		if got := f.For(tasks.Bcast).String(); got != tc.bcast {
			t.Errorf("%q for bcast: got %q, want %q", tc.forced, got, tc.bcast)
		}
		if got := f.For(tasks.Allreduce).String(); got != tc.allreduce {
			t.Errorf("%q for allreduce: got %q, want %q", tc.forced, got, tc.allreduce)
		}
	}
}

func TestParseForcedErrors(t *testing.T) {
	for _, tc := range []struct{ forced, want string }{
		{"w=1;gossip:w=2", `plan "gossip:w=2": unknown collective "gossip"; known are bcast, reduce, allreduce, allgather, gather, scatter, reducescatter, alltoall, barrier`},
		{":w=2", `unknown collective ""; known are bcast`},
		{"bcast:w=1:2", `plan "w=1:2": w=1:2: a window is 1 to 1024 segments`},
		{"w=1;shape=tree", `plan "shape=tree": unknown shape "tree"; known are flat, han`},
	} {
		_, err := tasks.ParseForced(tc.forced)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: got error %v, want %q in it", tc.forced, err, tc.want)
		}
	}
}

func FuzzParseForced(f *testing.F) {
	for _, s := range []string{"allreduce:shape=flat;w=8", ";;", "bcast:", "w=1;bcast:i=adapt//2K;ib=sm", "a:b:c", "x=y:z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		forced, err := tasks.ParseForced(s)
		if err != nil {
			return
		}
		// What it means for a collective can be forced again, and means the same.
		for _, c := range tasks.Requestable() {
			p := forced.For(c)
			again, err := tasks.ParseForced(c.String() + ":" + p.String())
			if err != nil || !again.For(c).Equal(p) {
				t.Fatalf("%q forces %v for %v, forced again: %v, error %v", s, p, c, again, err)
			}
		}
	})
}
