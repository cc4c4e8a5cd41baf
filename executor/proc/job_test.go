package proc

import (
	"strings"
	"testing"
)

// Where ranks can't be processes one line says so, and what works there.
func TestSupported(t *testing.T) {
	for _, system := range []string{"windows", "darwin"} {
		err := supportedOn(system)
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s: %v, want one line", system, err)
		}
		for _, part := range []string{"need Linux", "this is " + system, "goroutine ranks work"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", system, err, part)
			}
		}
	}
	if err := supportedOn("linux"); err != nil {
		t.Error(err)
	}
}
