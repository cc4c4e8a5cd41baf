package kit

import (
	"runtime"
	"strings"
	"testing"
)

// What needs more than half of the memory is refused, with what to give in its place.
func TestCheckMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says how much memory there is")
	}
	if err := CheckMemory("a simulation", 1<<20, "give less"); err != nil {
		t.Error(err)
	}
	err := CheckMemory("a simulation", 1<<50, "give less")
	if err == nil || !strings.Contains(err.Error(), "a simulation needs some 1") || !strings.HasSuffix(err.Error(), ": give less") {
		t.Error(err)
	}
}
