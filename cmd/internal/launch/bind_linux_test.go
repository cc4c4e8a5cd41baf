package launch

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/ranges"
)

// allowedLine makes a rank print the processors that it may run on.
var allowedLine = []string{"sh", "-c", "grep Cpus_allowed_list /proc/self/status"}

// Ranks may run where the launcher says, and the launcher itself as before.
func TestRanksAreBound(t *testing.T) {
	host, err := hostProcessors()
	if err != nil {
		t.Fatal(err)
	}
	if len(host) < 2 {
		t.Skipf("%d processors; binding two ranks apart takes two", len(host))
	}
	t.Setenv(env.Bind, "")
	all := allowedOf(t, Options{Ranks: 1, Bind: bindNone})[0]
	two, err := bind("", 2, host)
	if err != nil {
		t.Fatal(err)
	}
	apart := []string{ranges.Text(slices.Sorted(slices.Values(two[0]))), ranges.Text(slices.Sorted(slices.Values(two[1])))}
	for _, c := range []struct {
		opts Options
		env  string
		want []string
	}{
		{Options{Ranks: 2}, "", apart},
		{Options{Ranks: 2, Bind: bindShare}, bindNone, apart},
		{Options{Ranks: 2}, bindNone, []string{all, all}},
		{Options{Ranks: 2, Bind: bindNone}, bindCore, []string{all, all}},
		{Options{Ranks: len(host) + 1, Oversubscribe: true}, "", slices.Repeat([]string{all}, len(host)+1)},
		{Options{Hosts: "a:1,b:1", Launcher: launcherLocal}, "", []string{all, all}},
	} {
		t.Setenv(env.Bind, c.env)
		if got := allowedOf(t, c.opts); !slices.Equal(got, c.want) {
			t.Errorf("%d ranks on %q, bind %q, environment %q: %q, want %q", c.opts.Ranks, c.opts.Hosts, c.opts.Bind, c.env, got, c.want)
		}
	}
}

// Timers of ranks with one processor may be late, those of others and of the launcher are
// as before.
func TestTimersOfBoundRanks(t *testing.T) {
	host, err := hostProcessors()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(env.Bind, "")
	before, err := os.ReadFile("/proc/thread-self/timerslack_ns")
	if err != nil {
		t.Skipf("no slack of timers here: %v", err)
	}
	slack := func(o Options) string {
		o.Program, o.NoPrefix = []string{"cat", "/proc/self/timerslack_ns"}, true
		r := run(t, o)
		r.want(t, 0)
		return r.stdout.String()
	}
	if got := slack(Options{Ranks: 1, Bind: bindNone}); got != string(before) {
		t.Errorf("unbound: %q, want %q", got, before)
	}
	want := strings.Repeat(strconv.Itoa(boundSlack)+"\n", len(host))
	if got := slack(Options{Ranks: len(host)}); got != want {
		t.Errorf("a processor each: %q, want %q", got, want)
	}
	if got := slack(Options{Ranks: 1}); len(host) > 1 && got != string(before) {
		t.Errorf("%d processors for one rank: %q, want %q", len(host), got, before)
	}
}

// allowedOf returns the processors of each rank of a job, as the kernel lists them.
func allowedOf(t *testing.T, opts Options) []string {
	t.Helper()
	opts.Program = allowedLine
	r := run(t, opts)
	r.want(t, 0)
	lines := strings.Split(strings.TrimSpace(r.stdout.String()), "\n")
	all := make([]string, len(lines))
	for _, line := range lines {
		var rank int
		var list string
		if _, err := fmt.Sscanf(line, "[%d] Cpus_allowed_list: %s", &rank, &list); err != nil || rank >= len(all) {
			t.Fatalf("%q: %v", line, err)
		}
		all[rank] = list
	}
	return all
}

// What can't be done is said before any rank starts.
func TestBindErrors(t *testing.T) {
	host, err := hostProcessors()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flag, env, want string
		status          int
	}{
		{"cores", "", `bind "cores": allowed are share, core, numa or none`, statusOptions},
		{"", "socket", `bind "socket": allowed are share, core, numa or none`, statusOptions},
		{bindShare, "", fmt.Sprintf("--bind share: %d ranks on %d processors", len(host)+1, len(host)), statusLauncher},
	} {
		t.Setenv(env.Bind, c.env)
		r := run(t, Options{Ranks: len(host) + 1, Oversubscribe: true, Bind: c.flag, Program: allowedLine})
		r.want(t, c.status)
		if r.err == nil || !strings.Contains(r.err.Error(), c.want) || r.stdout.Len() > 0 {
			t.Errorf("--bind %q, environment %q: %v, output %q; want %q", c.flag, c.env, r.err, r.stdout.String(), c.want)
		}
	}
}
