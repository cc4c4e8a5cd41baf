//go:build linux

package launch

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
)

func init() { rankPrograms["enters"] = enters }

// enters sets a variable on one rank, joins, and says how that ended.
func enters(args []string) {
	if args[0] == fmt.Sprint(rank()) {
		check(os.Setenv(args[1], args[2]))
	}
	c, err := planner.Join(context.Background(), nil)
	check(err)
	fmt.Println("has entered")
	check(c.Close())
}

// A rank that can't enter its job ends it, and is the one that the launcher reports, with its reason. No other enters.
func TestRankThatCannotEnter(t *testing.T) {
	for _, test := range []struct{ rank, variable, value, why string }{
		{"0", env.Profile, "/dev", "TIERFLOW_PROFILE: /dev is a folder; allowed are names of files"},
		{"2", env.Recorder, "/dev/null/%r", "TIERFLOW_RECORDER: recorder file"},
		{"1", env.Trace, "/proc/x", "TIERFLOW_TRACE: mkdir /proc/x"},
		{"3", env.DumpDir, "/dev/null/x", "TIERFLOW_DUMP_DIR: mkdir /dev/null"},
	} {
		r := run(t, Options{Ranks: 4, Oversubscribe: true, Program: rankLine(t, "enters", test.rank, test.variable, test.value)})
		r.want(t, 99, "rank "+test.rank+" on localhost: exit status 99", test.why)
		if strings.Contains(r.stdout.String(), "has entered") {
			t.Errorf("%s on rank %s: some have entered\n%s", test.variable, test.rank, r.stdout.String())
		}
	}
}
