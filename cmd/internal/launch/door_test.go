//go:build unix

package launch

import (
	"io"
	"os"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
)

// The agent looks for doors where its ranks have theirs, not where it would have its own.
func TestAgentKnowsDoors(t *testing.T) {
	for _, test := range []struct {
		own, told string
		inherit   bool
		want      string
	}{
		{"/own", env.Door + "=/told", false, "/told"},
		{"/own", env.Door + "=/told", true, "/told"},
		{"/own", "A=b", true, "/own"},
		{"/own", "A=b", false, ""},
		{"/own", env.Door + "=off", true, "off"},
	} {
		t.Setenv(env.Door, test.own)
		a := newAgent(io.Discard)
		if err := a.prepare(&start{Version: protocolVersion, Ranks: []int{0}, Program: []string{self(t)}, Dir: "/", Env: []string{test.told}, Inherit: test.inherit}); err != nil {
			t.Fatal(err)
		}
		a.close()
		if got := os.Getenv(env.Door); got != test.want {
			t.Errorf("%+v: the agent looks at %q", test, got)
		}
	}
}
