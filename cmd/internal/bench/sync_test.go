package bench

import (
	"testing"
)

func TestSyncMisuse(t *testing.T) {
	tierflow.RefusesAll(t, "bench sync", map[string]string{
		"--bytes 1KiB,2KiB": "allowed is one size",
		"--late 0":          "--late 0 --times 5 --gbit 0: allowed are numbers from 1 on",
		"--gbit -1":         "a rate from 0 on",
		"":                  "at least one has the state", // one rank alone
	})
}

func TestState(t *testing.T) {
	state := make([]byte, 3<<20)
	fillState(state, 2)
	if !isState(state, 2) || isState(state, 3) {
		t.Error("a state is not told from another one")
	}
	if state[5<<10]++; isState(state, 2) {
		t.Error("a wrong byte is not found")
	}
}
