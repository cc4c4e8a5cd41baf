//go:build linux

package main

import (
	"bufio"
	"context"
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

// Processes are killed one after the other, and the sum stays right.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), ".", "../../../cmd/tierflow").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cases := []struct {
		ranks, kills int
		hosts        string
	}{{8, 5, "a:4,b:4"}}
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		cases = append(cases, cases[0], cases[0])
		cases[1].ranks, cases[1].hosts = 16, "a:4,b:4,c:4,d:4"
		cases[2].ranks, cases[2].hosts = 4, "a:1,b:1,c:1,d:1"
		cases[2].kills = 3
	}
	for _, test := range cases {
		t.Run(test.hosts, func(t *testing.T) {
			seed := rand.Uint64()
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			draw := rand.New(rand.NewPCG(seed, 0))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			program := filepath.Join(dir, "survive")
			cmd := exec.CommandContext(ctx, filepath.Join(dir, "tierflow"), "run", "-n", strconv.Itoa(test.ranks), "--min", strconv.Itoa(test.ranks-test.kills),
				"--hosts", test.hosts, "--launcher", "local", "--oversubscribe", "--", program)
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = cmd.Stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			killed, next, right := 0, 1, 0
			said := regexp.MustCompile(`step (\d+) with`)
			for lines := bufio.NewScanner(pipe); lines.Scan(); {
				text.WriteString(lines.Text() + "\n")
				if strings.Contains(lines.Text(), "is right: true") {
					right++
				}
				m := said.FindStringSubmatch(lines.Text())
				if m == nil {
					continue
				}
				// Each thirty steps one dies.
				if step, _ := strconv.Atoi(m[1]); step >= next && killed < test.kills {
					next = step + 30
					pids := processes(program)
					if err := syscall.Kill(pids[draw.IntN(len(pids))], syscall.SIGKILL); err != nil {
						t.Error(err)
					}
					killed++
				}
			}
			if err := cmd.Wait(); err != nil || killed != test.kills || right != test.ranks-killed {
				t.Errorf("%v; %d killed, %d of %d have the right weight:\n%s", err, killed, right, test.ranks-killed, text.String())
			}
		})
	}
}
