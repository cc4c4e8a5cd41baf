//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is after how long a job counts as hanging.
const patience = 4 * time.Minute

// TestMain builds this program and tierflow, once for all tests, in the folder built.
func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "survive"); err != nil {
		panic(err)
	}
	status := 1
	if out, err := exec.Command("go", "build", "-o", built+string(filepath.Separator), ".", "../../../cmd/tierflow").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
	} else {
		status = m.Run()
	}
	os.RemoveAll(built)
	os.Exit(status)
}

var built string

// Each kind of rank is killed, and the table has all kills.
func TestBenchRecover(t *testing.T) {
	t.Parallel() // its jobs wait for deaths, more than they compute
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tierflow := filepath.Join(built, "tierflow")
	out, err := exec.CommandContext(ctx, tierflow, "run", "-n", "4", "--hosts", "a:2,b:2", "--launcher", "local", "--oversubscribe",
		"--max-restarts", "6", "--", tierflow, "bench", "recover", "--kills", "6").CombinedOutput()
	for _, victim := range []string{"root", "leader", "leaf"} {
		if !regexp.MustCompile(`(?m)^\[\d+\] ` + victim + ` +2 +[1-9]`).Match(out) {
			t.Errorf("no two kills of a %s", victim)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v:\n%s", err, out)
	}
}

// What a rank holds of the system after many deaths, and as many newcomers, is what it held after the first ones.
func TestEndurance(t *testing.T) {
	t.Parallel() // its jobs wait for deaths, more than they compute
	ranks, hosts, kills, limit := 4, "a:2,b:2", 15, patience
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		ranks, hosts, kills, limit = 16, "a:4,b:4,c:4,d:4", 1000, time.Hour
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tierflow := filepath.Join(built, "tierflow")
	out, err := exec.CommandContext(ctx, tierflow, "run", "-n", strconv.Itoa(ranks), "--hosts", hosts, "--launcher", "local", "--oversubscribe",
		"--max-restarts", strconv.Itoa(2*kills), "--", tierflow, "bench", "recover", "--victim", "leaf", "--kills", strconv.Itoa(kills)).CombinedOutput()
	found := regexp.MustCompile(`rank 0 had (\d+) descriptors, (\d+) mappings, (\d+) goroutines, (\d+) KiB .* has (\d+) descriptors, (\d+) mappings, (\d+) goroutines, (\d+) KiB`).FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	t.Log(string(found[0]))
	for i, what := range []struct {
		name string
		more int // that come and go
	}{{"descriptors", 8}, {"mappings", 20}, {"goroutines", 8}, {"KiB", 3 << 10}} {
		before, _ := strconv.Atoi(string(found[1+i]))
		after, _ := strconv.Atoi(string(found[5+i]))
		if after > before+what.more {
			t.Errorf("%d %s after %d kills, %d after the first ones", after, what.name, kills, before)
		}
	}
}

// processes returns the processes of a program.
func processes(program string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range all {
		if to, err := os.Readlink(exe); err == nil && to == program {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(exe)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// Processes are killed one after the other, and the sum stays right. With restarts others take their places, and
// end with the right sum too.
func TestKilled(t *testing.T) {
	t.Parallel() // its jobs wait for deaths, more than they compute
	type job struct {
		ranks, kills int
		hosts        string
		restarts     int
		steps        int
	}
	cases := []job{{8, 5, "a:4,b:4", 0, 300}, {8, 6, "a:4,b:4", 20, 600}}
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		cases = append(cases, job{16, 5, "a:4,b:4,c:4,d:4", 0, 300}, job{4, 3, "a:1,b:1,c:1,d:1", 0, 300},
			job{16, 60, "a:4,b:4,c:4,d:4", 100, 3000}, job{4, 20, "a:4", 30, 1500}, job{3, 20, "a:1,b:1,c:1", 30, 1500})
	}
	every := 30 // steps
	if text := os.Getenv("TIERFLOW_TEST_KILLS"); text != "" {
		kills, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("TIERFLOW_TEST_KILLS: %v", err)
		}
		cases, every = []job{{8, kills, "a:4,b:4", 3 * kills, 12*kills + 300}}, 10 // most while others shrink, grow or sync
	}
	for _, test := range cases {
		t.Run(fmt.Sprintf("%s restarts=%d", test.hosts, test.restarts), func(t *testing.T) {
			seed := rand.Uint64()
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			draw := rand.New(rand.NewPCG(seed, 0))
			ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(test.kills)*time.Second)
			defer cancel()
			program := filepath.Join(built, "survive")
			cmd := exec.CommandContext(ctx, filepath.Join(built, "tierflow"), "run", "-n", strconv.Itoa(test.ranks), "--min", strconv.Itoa(max(1, test.ranks-test.kills)),
				"--max-restarts", strconv.Itoa(test.restarts), "--hosts", test.hosts, "--launcher", "local", "--oversubscribe",
				"--", program, "-steps", strconv.Itoa(test.steps), "-think", "10ms")
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = cmd.Stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			killed, next, right, wrong := 0, 1, 0, 0
			said := regexp.MustCompile(`step (\d+) with`)
			for lines := bufio.NewScanner(pipe); lines.Scan(); {
				text.WriteString(lines.Text() + "\n")
				if strings.Contains(lines.Text(), "is right: true") {
					right++
				}
				if strings.Contains(lines.Text(), "is right: false") {
					wrong++
				}
				m := said.FindStringSubmatch(lines.Text())
				if m == nil {
					continue
				}
				// Every few steps one dies.
				if step, _ := strconv.Atoi(m[1]); step >= next && killed < test.kills {
					next = step + every
					pids := processes(program)
					if err := syscall.Kill(pids[draw.IntN(len(pids))], syscall.SIGKILL); err != nil {
						t.Error(err)
					}
					killed++
				}
			}
			least, most := test.ranks-killed, test.ranks-killed
			if test.restarts > 0 {
				least, most = max(1, least+1), test.ranks // others came, perhaps not all in time
			}
			if err := cmd.Wait(); err != nil || killed != test.kills || wrong != 0 || right < least || right > most {
				t.Errorf("%v; %d killed, %d have the right weight, %d a wrong one; want %d to %d right:\n%s", err, killed, right, wrong, least, most, text.String())
			}
		})
	}
}
