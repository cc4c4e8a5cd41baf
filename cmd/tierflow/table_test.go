package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
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
		{"simulate", "\nplan: " + tablePlan + "\n"},
		{"bench coll --link none --iters 1 --json", `"plan": "` + tablePlan + `"`},
	} {
		args := strings.Fields(test.command + tableCase)
		if s := tierflow.Run(t, args...); s.Status != 0 || strings.Contains(s.Out, tablePlan) {
			t.Fatalf("%v, without a table: %+v", args, s)
		}
		if s := tierflow.Run(t, append(args, "--table", recordedTable)...); !strings.Contains(s.Out, test.with) {
			t.Errorf("%v --table: %q is not in %+v", args, test.with, s)
		}
		t.Run(test.command, func(t *testing.T) {
			t.Setenv(env.Table, recordedTable)
			if s := tierflow.Run(t, args...); !strings.Contains(s.Out, test.with) {
				t.Errorf("%v, %s=%s: %q is not in %+v", args, env.Table, recordedTable, test.with, s)
			}
		})
	}
}
