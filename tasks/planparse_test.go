package tasks_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

// TestParsePlanErrors: each error has the whole plan, the word and what is allowed.
func TestParsePlanErrors(t *testing.T) {
	const keys = "keys are shape, fs, w, order, eager, a level (i, s, …) or a task kind (ib, sr, …)"
	const form = "write submodule[/algorithm][/inner segment][/number]"
	for _, tc := range []struct{ plan, want string }{
		{"han", `"han" is not key=value; ` + keys},
		{"shape=tree", `unknown shape "tree"; known are flat, han`},
		{"shape=", `unknown shape ""; known are flat, han`},
		{"fs=0", "fs=0: a segment has at least one byte"},
		{"fs=64kB", `"64kB" is not a byte count; write 65536, 64KiB`},
		{"w=0", "w=0: a window is 1 to 1024 segments"},
		{"w=1025", "w=1025: a window is 1 to 1024 segments"},
		{"w=", "w=: a window is 1 to 1024 segments"},
		{"w=-1", "w=-1: a window is 1 to 1024 segments"},
		{"w=4x", "w=4x: a window is 1 to 1024 segments"},
		{"window=4", `unknown key "window"; ` + keys},
		{"I=adapt", `unknown key "I"; ` + keys},
		{"iz=adapt", `unknown key "iz"; ` + keys},
		{"1b=adapt", `unknown key "1b"; ` + keys},
		{"=adapt", `unknown key ""; ` + keys},
		{"i=", "i=: " + form},
		{"i=/chain", "i=/chain: " + form},
		{"i=Adapt", "i=Adapt: " + form},
		{"i=4", "i=4: " + form},
		{"i=adapt/chain/1K/2/3", "i=adapt/chain/1K/2/3: " + form},
		{"i=adapt/chain/1K/2K", `i=adapt/chain/1K/2K: number "2K": an algorithm's number is 2 to 1024`},
		{"i=nbc/bruck//1", `i=nbc/bruck//1: number "1": an algorithm's number is 2 to 1024`},
		{"i=adapt/Chain", `name "Chain": allowed are a to z, digits, '.', '_' and '-'`},
		{"i=a b", `name "a b": allowed are`},
		{"i=adapt/chain/x", `i=adapt/chain/x: "x" is not a byte count`},
		{"i=adapt/chain/", `i=adapt/chain/: "" is not a byte count`},
	} {
		_, err := tasks.ParsePlan("fs=1," + tc.plan)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), `plan "fs=1,`+tc.plan+`": `) {
			t.Errorf("%q: got error %v, want the plan and %q", tc.plan, err, tc.want)
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	for _, s := range []string{
		"shape=han,fs=256KiB,w=4,i=adapt/chain/32KiB,s=solo", "w=2,w=nbc,wb=nbc//1K", "i=nbc/bruck//4", "ia=adapt/linear/8KiB/3", "fs=all", " , ", "i=a=b",
		"i=adapt/", "ib=x,i=y,i=z", "s=sm;i=adapt",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := tasks.ParsePlan(s)
		if err != nil {
			return
		}
		back, err := tasks.ParsePlan(p.String())
		if err != nil || !back.Equal(p) {
			t.Fatalf("%q is printed %q, read again %q, error %v", s, p, back, err)
		}
		if len(p.Keys()) > 0 && !p.Over(p).Equal(p) {
			t.Fatalf("%v over itself is %v", p, p.Over(p))
		}
	})
}
