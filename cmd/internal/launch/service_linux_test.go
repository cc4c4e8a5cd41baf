package launch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serviceLimit is the limit of the service's calls.
const serviceLimit = time.Second

// misfortune is what befalls a rank of the service.
type misfortune struct {
	name   string
	strike func(pid int)
	ends   bool   // its process is replaced; else it goes on, or is replaced
	named  string // is said of a slot afterwards; empty: nothing needs to be
}

// sends sends signals to a process, some time apart from the second on.
func sends(after time.Duration, signals ...syscall.Signal) func(pid int) {
	return func(pid int) {
		for i, s := range signals {
			if i > 0 {
				pause(after)
			}
			_ = syscall.Kill(pid, s) // it may have ended meanwhile
		}
	}
}

const (
	sayEnded   = `\[tierflow run\] rank %d on \S+: (exit status|ended by signal:) .*; restart `
	sayWithout = `\[tierflow run\] the others go on without rank %d on host`
)

var misfortunes = []misfortune{
	{"SIGKILL", sends(0, syscall.SIGKILL), true, sayEnded},
	{"SIGINT", sends(0, syscall.SIGINT), true, sayEnded},
	{"SIGTERM", sends(0, syscall.SIGTERM), true, sayEnded},
	{"SIGHUP", sends(0, syscall.SIGHUP), true, sayEnded},
	{"SIGTERM twice", sends(0, syscall.SIGTERM, syscall.SIGTERM), true, sayEnded},
	{"hangs", sends(0, syscall.SIGUSR1), true, sayWithout},
	{"is stopped", sends(0, syscall.SIGSTOP), true, sayWithout},
	{"hangs a little", sends(0, syscall.SIGUSR2), false, ""},
	{"hangs for long", sends(0, syscall.SIGALRM), false, ""},
	{"is stopped for a while", sends(3*serviceLimit, syscall.SIGSTOP, syscall.SIGCONT), false, ""},
	{"is slow", sends(0, syscall.SIGWINCH), false, ""},
}

// serviceJob is a running service.
type serviceJob struct {
	t    *testing.T
	out  *buffer
	size int
	all  map[int]bool // pids that there ever were
}

var (
	slotLine = regexp.MustCompile(`(?m)slot (\d+) has pid (\d+)$`)
	stepLine = regexp.MustCompile(`(?m)step \d+ with (\d+) ranks$`)
)

// pids returns the newest process of each slot.
func (s *serviceJob) pids() map[int]int {
	pids := map[int]int{}
	for _, m := range slotLine.FindAllStringSubmatch(s.out.String(), -1) {
		slot, _ := strconv.Atoi(m[1])
		pids[slot], _ = strconv.Atoi(m[2])
		s.all[pids[slot]] = true
	}
	return pids
}

// awaitWhole waits until all ranks take steps together, in the output from a place on.
func (s *serviceJob) awaitWhole(from int) {
	s.t.Helper()
	eventually(s.t, func() error {
		text := s.out.String()[from:]
		for _, m := range stepLine.FindAllStringSubmatch(text, -1) {
			if m[1] == strconv.Itoa(s.size) {
				return nil
			}
		}
		return fmt.Errorf("the service is not whole again:\n%.10000s", text)
	})
}

// strike lets a misfortune befall a slot, and returns how long the service then took to take a step.
func (s *serviceJob) strike(m misfortune, slot int) time.Duration {
	s.t.Helper()
	pid, from, begun := s.pids()[slot], len(s.out.String()), time.Now()
	m.strike(pid)
	over := func() error {
		if now := s.pids()[slot]; now != pid {
			return nil
		}
		if text := s.out.String()[from:]; m.ends || m.name != "is slow" && !strings.Contains(text, fmt.Sprintf("pid %d is back", pid)) {
			return fmt.Errorf("slot %d, process %d, which %s, is not over it:\n%.10000s", slot, pid, m.name, text)
		}
		return nil
	}
	if m.name != "is slow" {
		eventually(s.t, func() error { // the first step without it, or with it again
			all := stepLine.FindAllStringSubmatchIndex(s.out.String()[from:], -1)
			for _, one := range all {
				if n := s.out.String()[from:][one[2]:one[3]]; n != strconv.Itoa(s.size) || over() == nil {
					return nil
				}
			}
			return fmt.Errorf("the others don't go on after %s of slot %d:\n%.10000s", m.name, slot, s.out.String()[from:])
		})
	}
	took := time.Since(begun)
	eventually(s.t, over)
	s.awaitWhole(len(s.out.String()))
	text := s.out.String()[from:]
	if m.named != "" {
		says(s.t, text, fmt.Sprintf(m.named, slot))
	}
	if strings.Contains(text, "WRONG") {
		s.t.Fatalf("a wrong sum after %s of slot %d:\n%s", m.name, slot, text)
	}
	if m.name == "is slow" { // for the next ones not to wait
		_ = syscall.Kill(pid, syscall.SIGKILL)
		eventually(s.t, func() error {
			if s.pids()[slot] == pid {
				return fmt.Errorf("slot %d was not replaced", slot)
			}
			return nil
		})
		s.awaitWhole(len(s.out.String()))
	}
	return took
}

// A service of processes that are killed, interrupted, stopped, slow, and hang, goes on: its sums are right, each
// fault is named where a process was lost, a new process takes the place of a lost one. A signal to the launcher ends it, and
// leaves nothing over. TIERFLOW_TEST_FAULTS is how many faults are drawn, else each kind comes once; TIERFLOW_TEST_SEED
// is the seed.
func TestService(t *testing.T) {
	t.Parallel() // it mostly waits
	seed, faults := rand.Uint64(), 0
	readNumber(t, "TIERFLOW_TEST_FAULTS", &faults)
	readNumber(t, "TIERFLOW_TEST_SEED", &seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var all []misfortune
	for _, i := range rng.Perm(len(misfortunes)) {
		all = append(all, misfortunes[i])
	}
	for faults > 0 && len(all) < faults {
		all = append(all, misfortunes[rng.IntN(len(misfortunes))])
	}
	program := filepath.Join(t.TempDir(), "service")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../../testdata/apps/service").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const perJob = 40
	times := map[string][]time.Duration{}
	for begin, n := 0, 0; begin < len(all); begin, n = begin+perJob, n+1 {
		hosts, size := "a:2,b:2", 4
		if n%2 == 1 {
			hosts, size = "a:4,b:4", 8
		}
		serve(t, program, hosts, size, all[begin:min(begin+perJob, len(all))], rng, times)
	}
	t.Logf("seed %d; from a fault to the next step, median and longest:", seed)
	for _, m := range misfortunes {
		if took := times[m.name]; len(took) > 0 {
			slices.Sort(took)
			t.Logf("%-24s %4d  %6.2f s %6.2f s", m.name, len(took), took[len(took)/2].Seconds(), took[len(took)-1].Seconds())
		}
	}
}

// serve runs a job through its faults and ends it by a signal.
func serve(t *testing.T, program, hosts string, size int, faults []misfortune, rng *rand.Rand, times map[string][]time.Duration) {
	t.Helper()
	s := &serviceJob{t: t, out: &buffer{}, size: size, all: map[int]bool{}}
	j, _, err := prepare(Options{
		Hosts: hosts, Launcher: launcherLocal, Oversubscribe: true, MaxRestarts: 1 << 20, Min: 2, Grace: 2 * time.Second,
		Program: []string{program, "-limit", serviceLimit.String()},
	}, nil, s.out, s.out)
	if err != nil {
		t.Fatal(err)
	}
	j.after = func(d time.Duration) <-chan time.Time { return time.After(d / 10) } // outcasts
	over := make(chan struct{})
	go func() {
		defer close(over)
		j.loop(context.Background())
	}()
	defer func() { // also if the test fails
		select {
		case j.signals <- syscall.SIGTERM:
		case <-over:
		}
		<-over
	}()
	s.awaitWhole(0)
	for _, m := range faults {
		times[m.name] = append(times[m.name], s.strike(m, rng.IntN(size)))
	}
	sig := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}[rng.IntN(3)]
	for range 1 + rng.IntN(2) {
		j.signals <- sig
	}
	<-over
	if status, err := j.result(); status == 0 || err == nil {
		t.Errorf("ended by %v: status %d, %v", sig, status, err)
	}
	s.pids()
	for pid := range s.all {
		eventually(t, func() error {
			if err := syscall.Kill(pid, 0); err == nil {
				return fmt.Errorf("process %d is left over", pid)
			}
			return nil
		})
	}
}
