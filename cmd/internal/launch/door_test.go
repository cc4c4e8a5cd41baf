//go:build unix

package launch

import (
	"io"
	"os"
	"testing"
)

// The agent looks for doors where its ranks have theirs, not where it would have its own.
func TestAgentKnowsDoors(t *testing.T) {
	for _, test := range []struct {
		own, told string
		inherit   bool
		want      string
	}{
		{"/own", envDoor + "=/told", false, "/told"},
		{"/own", envDoor + "=/told", true, "/told"},
		{"/own", "A=b", true, "/own"},
		{"/own", "A=b", false, ""},
		{"/own", envDoor + "=off", true, "off"},
	} {
		t.Setenv(envDoor, test.own)
		a := newAgent(io.Discard)
		if err := a.prepare(&start{Version: protocolVersion, Ranks: []int{0}, Program: []string{self(t)}, Dir: "/", Env: []string{test.told}, Inherit: test.inherit}); err != nil {
			t.Fatal(err)
		}
		a.close()
		if got := os.Getenv(envDoor); got != test.want {
			t.Errorf("%+v: the agent looks at %q", test, got)
		}
	}
}
