package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
)

// unaware is a program without package foreign. It prints what rank 0 makes of a forced plan.
const unaware = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tierflow/tierflow/planner"
)

func main() {
	comm, err := planner.Join(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	if bcast, err := planner.PrepareBcast(context.Background(), comm, make([]int64, 100), 0); err != nil {
		fmt.Println(err)
	} else if comm.Rank() == 0 {
		fmt.Println(bcast.Explain())
	}
	comm.Close()
}
`

// awareRank is unaware's rank 0 in a program with package foreign.
func awareRank() error {
	comm, err := planner.Join(context.Background(), nil)
	if err != nil {
		return err
	}
	defer comm.Close()
	bcast, err := planner.PrepareBcast(context.Background(), comm, make([]int64, 100), 0)
	if err == nil {
		fmt.Println(bcast.Explain())
	}
	return err
}

// buildProgram builds a program in a folder and returns its path.
func buildProgram(t *testing.T, dir, text string) string {
	t.Helper()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "prog")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// Programs without the words of other libraries have them under tierflow run, on all hosts and whoever
// sets the variable. Without it rank 0's program needs the import, and is told so.
func TestRunReplacesWords(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	dir := t.TempDir()
	program, rsh := buildProgram(t, dir, unaware), filepath.Join(dir, "rsh")
	const remote = "#!/bin/sh\nshift\n" + env.Plan + "=$ON_HOST TIERFLOW_TEST_AGENT=1 exec sh -c \"$*\"\n"
	if err := os.WriteFile(rsh, []byte(remote), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TIERFLOW_TEST_AGENT", "1") // see TestMain
	const word, want = "bcast:ompi=binomial/8KiB", "fs=all,w=4,ib=adapt/binomial/8KiB"
	on := func(launcher string, words ...string) string {
		var out, errors strings.Builder
		words = append([]string{"run", "--hosts", "a:1,b:1", "--launcher", launcher, "--agent", os.Args[0]}, words...)
		return fmt.Sprintf("status %d\n%s%s", run(t.Context(), words, nil, &out, &errors), &out, &errors)
	}
	for _, test := range []struct{ here, export, onHost, launcher, want string }{
		{here: word, launcher: "local", want: want},
		{here: word, launcher: rsh, want: want},
		{here: "w=9", export: word, launcher: rsh, want: want},
		{onHost: word, launcher: rsh, want: want},
		{here: "bcast:ompi=66", launcher: rsh, want: `: TIERFLOW_PLAN: plan "bcast:ompi=66": bcast "66": unknown; ompi has 1 basic_linear`},
	} {
		t.Setenv(env.Plan, test.here)
		t.Setenv("ON_HOST", test.onHost)
		if test.here == "" {
			os.Unsetenv(env.Plan)
		}
		words := []string{"--", program}
		if test.export != "" {
			words = append([]string{"-x", env.Plan + "=" + test.export}, words...)
		}
		if out := on(test.launcher, words...); !strings.Contains(out, test.want) {
			t.Errorf("%+v: %s", test, out)
		}
	}
	t.Setenv(env.Plan, "") // and the agent sees no words
	out := on("local", "--", "env", env.Plan+"="+word, program)
	if !strings.Contains(out, `TIERFLOW_PLAN of rank 0: plan "`+word+`": ompi= and mpich= are words of other libraries; for them the program needs import _ "github.com`) {
		t.Errorf("a program that nobody has replaced the words for: %s", out)
	}
	either := fmt.Sprintf("test $TIERFLOW_RANK = 0 && exec env TIERFLOW_TEST_PROGRAM=aware %s || exec %s", os.Args[0], program)
	if out := on("local", "--", "env", env.Plan+"="+word, "sh", "-c", either); !strings.Contains(out, want) {
		t.Errorf("rank 0 alone knows the words: %s", out)
	}
}
