package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// cutDown removes all operations from a failing program that it fails without. It
// tries in processes of this test's binary, so a program that hangs ends with its
// process.
func cutDown(t *testing.T) {
	gone := numbers(t, randomWithout)
	p := drawProgram(randomSeed, kindOfRanks(randomSeed), randomFaultWanted != "none")
	for id := range p.ops {
		if p.fault != nil && id == p.fault.op || slices.Contains(gone, id) {
			continue
		}
		if failsWithout(t, append(slices.Clone(gone), id)) {
			gone = append(gone, id)
		}
	}
	p.without(gone)
	t.Logf("-random.without=%s\n%v", strings.Trim(strings.ReplaceAll(fmt.Sprint(gone), " ", ","), "[]"), p)
}

// failsWithout tells whether the program of -random.seed still fails when operations are
// left out.
func failsWithout(t *testing.T, ids []int) bool {
	t.Helper()
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
	_, err := again(t, append(passOn(), "-random.child", fmt.Sprint("-random.seed=", randomSeed),
		fmt.Sprint("-random.repeat=", randomRepeat), "-random.without="+list)...)
	return err != nil
}
