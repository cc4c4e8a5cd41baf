package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// recordedTable has a plan for this case that the built-in rule would not choose.
var recordedTable = filepath.Join("..", "..", "testdata", "tables", "recorded.json")

const (
	tableCase = " reduce --topo 2x2 --bytes 64"
	tablePlan = "shape=han,fs=all,w=1,ir=nbc/linear,sr=sm/slots"
)

// All commands that decide take the decision table that plan takes.
func TestTable(t *testing.T) {
	for _, test := range []struct{ command, with string }{
		{"plan", "plan: " + tablePlan},
		{"dag", "\n" + tablePlan + "\n"},
		{"bench coll --link none --iters 1 --json", `"plan": "` + tablePlan + `"`},
	} {
		args := strings.Fields(test.command + tableCase)
		if s := tierflow(t, args...); s.status != 0 || strings.Contains(s.out, tablePlan) {
			t.Fatalf("%v, without a table: %+v", args, s)
		}
		if s := tierflow(t, append(args, "--table", recordedTable)...); !strings.Contains(s.out, test.with) {
			t.Errorf("%v --table: %q is not in %+v", args, test.with, s)
		}
		t.Run(test.command, func(t *testing.T) {
			t.Setenv(planner.TableVariable, recordedTable)
			if s := tierflow(t, args...); !strings.Contains(s.out, test.with) {
				t.Errorf("%v, %s=%s: %q is not in %+v", args, planner.TableVariable, recordedTable, test.with, s)
			}
		})
	}
}

// The built-in rule reduces inside nodes by sm; the table says flat, so that all is
// between nodes.
func TestTraceWithTable(t *testing.T) {
	args := strings.Fields("trace allreduce --topo 2x2 --bytes 64 --link none --format text")
	if out := succeeds(t, args...); !strings.Contains(out, " s ") {
		t.Errorf("no steps inside nodes in\n%s", out)
	}
	if out := succeeds(t, append(args, "--table", recordedTable)...); strings.Contains(out, " s ") {
		t.Errorf("steps inside nodes in\n%s", out)
	}
}

// verify checks the table's plan, once for each request, in place of all plans.
func TestVerifyTable(t *testing.T) {
	args := strings.Fields("verify" + tableCase + " --json --in-place=false --non-commutative=false --root 0 --table " + recordedTable)
	if v := decode[verification](t, succeeds(t, args...)); v.Checked != 1 || v.Cases != 1 {
		t.Errorf("%+v, want one case", v)
	}
}
