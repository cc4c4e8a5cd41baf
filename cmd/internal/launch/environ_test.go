//go:build unix

package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Ranks get the same variables wherever they are, and on no command line.
func TestExport(t *testing.T) {
	marked(t)
	env := []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=3", "OMP_NUM_THREADS=2", "TIERFLOW_PLAN=p", "NAMED=n v", "OTHER=o", "GIVEN=before"}
	for name, launcher := range launchers(t) {
		r := run(t, Options{
			Hosts: "a:1,b:1", Launcher: launcher, Env: env, Export: []string{"NAMED", "GIVEN=a=hush-hush", "OTHER=first", "OTHER=last"},
			Program: rankLine(t, "exported"),
		})
		r.want(t, 0)
		want := "GIVEN=a=hush-hush GOMAXPROCS=3 NAMED=n v OMP_NUM_THREADS=2 OTHER=last TIERFLOW_PLAN=p hidden true\n"
		if got := strings.Join(slices.Sorted(strings.Lines(r.stdout.String())), ""); got != "[0] "+want+"[1] "+want {
			t.Errorf("%s: %q, want twice %q", name, got, want)
		}
	}
	here := []string{"TIERFLOW_ADVERTISE=10.0.0.1", "TIERFLOW_PORTS=1-9"}
	if there := passedEnv(here, false); !slices.Equal(there, here[1:]) || !slices.Equal(passedEnv(here, true), here) {
		t.Errorf("other hosts get %q: the launcher's addresses are not theirs", there)
	}
	for export, want := range map[string]string{
		"MISSING":         "variable MISSING is not in the launcher's environment: set it, or give MISSING=VALUE",
		"=x":              `variable "=x": give NAME, or NAME=VALUE`,
		"TIERFLOW_RANK=1": "variable TIERFLOW_RANK: the launcher sets it for each rank",
	} {
		run(t, Options{Ranks: 1, Env: env, Export: []string{export}, Program: []string{"true"}}).want(t, statusOptions, want)
	}
}

// exported prints the variables of TestExport, and whether no command line has a value.
func exported([]string) {
	var all []string
	for _, name := range []string{"GIVEN", "GOMAXPROCS", "NAMED", "OMP_NUM_THREADS", "OTHER", "TIERFLOW_PLAN"} {
		all = append(all, name+"="+os.Getenv(name))
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(err)
	hidden := len(files) > 0
	for _, file := range files {
		line, err := os.ReadFile(file)
		hidden = hidden && (err != nil || !strings.Contains(string(line), os.Getenv("GIVEN")))
	}
	fmt.Println(strings.Join(all, " "), "hidden", hidden)
}

// Each rank has a file of its own, with both streams and nothing of others.
func TestLogDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "logs")
	opts := Options{
		Ranks: 12, Oversubscribe: true, LogDir: dir,
		Program: []string{"/bin/sh", "-c", "echo out $TIERFLOW_RANK; echo err $TIERFLOW_RANK >&2; printf part"},
	}
	for range 2 { // the second job begins anew
		r := run(t, opts)
		r.want(t, 0)
		if !strings.Contains(r.stdout.String(), "[11] out 11\n") {
			t.Errorf("standard output lacks rank 11: %q", r.stdout.String())
		}
		for rank := range opts.Ranks {
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank.%02d.log", rank)))
			lines := slices.Sorted(strings.Lines(string(text)))
			if want := []string{fmt.Sprintf("err %d\n", rank), fmt.Sprintf("out %d\n", rank), "part\n"}; err != nil || !slices.Equal(lines, want) {
				t.Errorf("rank %d: %q, %v, want %q", rank, lines, err, want)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, Options{Ranks: 1, LogDir: file, Program: []string{"true"}}).want(t, statusLauncher, "folder of logs", file)
}

// Every line says when it came, in the file too.
func TestTimestamps(t *testing.T) {
	dir := t.TempDir()
	r := run(t, Options{Ranks: 1, Timestamps: true, LogDir: dir, Program: []string{"/bin/sh", "-c", "echo one; echo two"}})
	r.want(t, 0)
	const stamp = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d) `
	if want := regexp.MustCompile(`^` + stamp + `\[0\] one\n` + stamp + `\[0\] two\n$`); !want.MatchString(r.stdout.String()) {
		t.Errorf("%q, want %s", r.stdout.String(), want)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "rank.00.log"))
	if want := regexp.MustCompile(`^` + stamp + `one\n` + stamp + `two\n$`); err != nil || !want.Match(kept) {
		t.Errorf("%q, %v, want %s", kept, err, want)
	}
	run(t, Options{Ranks: 1, Timestamps: true, NoPrefix: true, Program: []string{"true"}}).want(t, statusOptions, "timestamps need whole lines")
}
