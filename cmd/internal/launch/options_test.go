package launch

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsAllComplaintsAtOnce(t *testing.T) {
	status, err := Run(t.Context(), Options{Ranks: -1, Hosts: "a", Hostfile: "f", Map: "star", Timeout: -1}, nil, nil, nil)
	if status != statusOptions || err == nil {
		t.Fatalf("status %d, error %v", status, err)
	}
	for _, part := range []string{"no program", "-1 ranks: give 1 to", "give one", `map "star": allowed are block and rr`, "not negative"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error lacks %q:\n%v", part, err)
		}
	}
}

func TestOptionsDefaults(t *testing.T) {
	for _, test := range []struct{ given, launcher string }{{"", launcherLocal}, {"a", launcherSSH}} {
		o, err := Options{Hosts: test.given, Program: []string{"x"}}.withDefaults()
		if err != nil || o.Launcher != test.launcher || o.Map != mapBlock || o.AgentTimeout != 30*time.Second ||
			len(o.Env) == 0 || !filepath.IsAbs(o.Dir) || len(o.Agent) != 2 || o.Agent[1] != "agent" {
			t.Errorf("%+v, %v", o, err)
		}
	}
}

// In a Slurm allocation its hosts are the default, unless somebody says otherwise.
func TestOptionsInSlurm(t *testing.T) {
	job := []string{"SLURM_JOB_NODELIST=none", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=3,2"}
	for _, test := range []struct {
		given           Options
		hosts, launcher string
	}{
		{Options{}, "n1:3,n2:2", launcherSlurm},
		{Options{Ranks: 4}, "n1:3,n2:2", launcherSlurm},
		{Options{Launcher: launcherLocal}, "", launcherLocal},
		{Options{Hosts: "a"}, "a", launcherSSH},
	} {
		test.given.Env, test.given.Program = job, []string{"x"}
		o, err := test.given.withDefaults()
		if err != nil || o.Hosts != test.hosts || o.Launcher != test.launcher {
			t.Errorf("%q, %q, %v; want %q, %q", o.Hosts, o.Launcher, err, test.hosts, test.launcher)
		}
	}
	o := Options{Env: []string{"SLURM_JOB_NODELIST=n[", "SLURM_TASKS_PER_NODE=1"}, Program: []string{"x"}}
	if _, err := o.withDefaults(); err == nil || !strings.Contains(err.Error(), `SLURM_JOB_NODELIST="n[": want names`) {
		t.Error(err)
	}
}

func TestAgentCommand(t *testing.T) {
	agent := []string{"/opt/tier flow", "agent"}
	for _, test := range []struct {
		launcher, host string
		want           string
	}{
		{launcherLocal, "a", "/opt/tier flow|agent"},
		{launcherSSH, "me@[::1]", "ssh|" + strings.Join(sshOptions, "|") + "|me@::1|'/opt/tier flow'|agent"},
		{"rsh -n", "a", "rsh|-n|a|'/opt/tier flow'|agent"},
	} {
		got := strings.Join(agentCommand(&Options{Launcher: test.launcher, Agent: agent}, test.host), "|")
		if got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
	for word, want := range map[string]string{"": "''", "a-b_c/d.e": "a-b_c/d.e", "it's": `'it'\''s'`, "$x": "'$x'", "~": "'~'"} {
		if got := shellQuote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

func TestPassedEnv(t *testing.T) {
	env := []string{"HOME=/h", "TIERFLOW_PLAN=x", "TIERFLOW_RANK=7", "TIERFLOW_SECRET=old", "TIERFLOWER=1"}
	if diff := cmp.Diff([]string{"TIERFLOW_PLAN=x"}, passedEnv(env, false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"HOME=/h", "TIERFLOW_PLAN=x", "TIERFLOWER=1"}, passedEnv(env, true)); diff != "" {
		t.Error(diff)
	}
}
