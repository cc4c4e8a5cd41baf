package verify

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Whatever is drawn, the command that repeats it checks one case, of as many steps.
func TestRepeatCommand(t *testing.T) {
	v := &verifying{reg: all.Submodules(), maxRanks: 6, colls: tasks.Requestable()}
	check := checker{reg: v.reg, maxRanks: v.maxRanks}
	repeated := 0
	for i := range 80 {
		c := v.drawCase(i)
		want, line := check.checkOne(c), repeatCommand(c)
		if want.reason != "" || strings.Contains(line, "{") {
			continue // it is skipped, or its topology in JSON is a word with spaces
		}
		args := strings.Fields(strings.ReplaceAll(line, "'", ""))[1:]
		if got := kittest.Decode[verification](t, tierflow.Succeeds(t, append(args, "--json")...)); got.Checked != 1 || got.Steps != int64(want.steps) {
			t.Errorf("%s: %+v; want one case of %d steps", line, got, want.steps)
		}
		repeated++
	}
	if repeated < 20 {
		t.Errorf("%d of 80 cases were repeated", repeated)
	}
}

func TestQuoteArgument(t *testing.T) {
	for word, want := range map[string]string{"4x2": "4x2", "1,0;3": "'1,0;3'", `{"a": 1}`: `'{"a": 1}'`, "it's": `'it'\''s'`, "a b": "'a b'"} {
		if got := quoteArgument(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

// A message is cut into whole elements, and one element not at all.
func TestListCuts(t *testing.T) {
	for bytes, want := range map[int64]int{0: 1, 4: 1, 8: 5, 400: 5} {
		cuts := listCuts(tasktest.Request(tasks.Bcast, bytes))
		if len(cuts) != want {
			t.Errorf("%d bytes are cut in %d ways, want %d", bytes, len(cuts), want)
		}
		for _, c := range cuts {
			if c.segment < 4 && c.segment != tasks.Whole || c.window < 1 || c.inner < 0 {
				t.Errorf("%d bytes: %+v", bytes, c)
			}
		}
	}
}

// What was left out is counted by its reason, and doesn't count as checked.
func TestCheckAll(t *testing.T) {
	on := tasktest.Topology(t, "2x2")
	at := func(i int) casegen.Case {
		plan := []string{"shape=han,fs=all,w=1,i=adapt/chain,s=sm", "shape=han,fs=all,w=1,i=sm,s=sm"}[i%2]
		return casegen.Case{Request: tasktest.Request(tasks.Bcast, 64), Topology: on, Plan: tasktest.Plan(t, plan)}
	}
	c := checker{reg: all.Submodules(), maxRanks: 4}
	report, failure, err := c.checkAll(t.Context(), 7, at, nil)
	if err != nil || failure != nil || report.Checked != 4 || report.Skipped["unsupported"] != 3 || report.Steps == 0 {
		t.Errorf("%+v, %v, %v", report, failure, err)
	}
	report.Seconds = 0
	if text := string(report.text()); !strings.HasPrefix(text, "7 cases: 4 checked, 0 failed, 3 skipped (3 unsupported); ") {
		t.Errorf("%q", text)
	}
	c.maxRanks = 3
	if report, _, _ := c.checkAll(t.Context(), 2, at, nil); report.Skipped["too large"] != 2 || c.firstSkip(2, at) == nil {
		t.Errorf("%+v of at most 3 ranks", report)
	}
}
