package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
)

func TestAgentWords(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		custom, metrics, variable string
		want                      []string
	}{
		{want: nil},
		{metrics: ":9100", want: []string{self, "agent", "--metrics", ":9100"}},
		{variable: ":9100", want: []string{self, "agent", "--metrics", ":9100"}},
		{metrics: ":1", variable: ":9100", want: []string{self, "agent", "--metrics", ":1"}},
		{custom: "mine  -x", want: []string{"mine", "-x"}},
		{custom: "mine", variable: ":9100", want: []string{"mine"}},
	} {
		t.Setenv(env.Metrics, test.variable)
		if got, err := agentWords(test.custom, test.metrics); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("--agent %q --metrics %q, %s=%q: %q, %v; want %q", test.custom, test.metrics, env.Metrics, test.variable, got, err, test.want)
		}
	}
	if got, err := agentWords("mine", ":9100"); err == nil {
		t.Errorf("--agent mine --metrics :9100: %q; want a complaint", got)
	}
}

// An agent that knows no flags starts its ranks though metrics are wanted everywhere.
func TestRunCustomAgent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the agent is a shell script")
	}
	agent := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(agent, []byte("#!/bin/sh\ntest $# = 0 || exit 9\nexec '"+os.Args[0]+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TIERFLOW_TEST_AGENT", "1")
	t.Setenv(env.Metrics, "127.0.0.1:0")
	if s := tierflow.Run(t, "run", "-n", "1", "--agent", agent, "--", "echo", "here"); s.Status != 0 || s.Out != "[0] here\n" {
		t.Errorf("%+v", s)
	}
	if s := tierflow.Run(t, "run", "-n", "1", "--agent", agent, "--metrics", ":0", "--", "true"); s.Status != 2 || s.Out != "" {
		t.Errorf("--metrics with --agent: %+v; want status 2", s)
	}
}
