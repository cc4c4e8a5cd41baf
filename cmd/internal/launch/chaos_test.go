//go:build linux

package launch

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/levels/join/env"
)

// The environment of TestChaos: how many cases to run, the seed of the first, and the phase in which a rank meets its fate.
// The next cases are those of the seeds that count on from it, without those of other phases. Without them it runs the same
// few cases each time, although not at the same pace.
const (
	chaosVariable      = "TIERFLOW_CHAOS"
	chaosSeedVariable  = "TIERFLOW_CHAOS_SEED"
	chaosPhaseVariable = "TIERFLOW_CHAOS_PHASE"
	chaosDefault       = 20
	chaosDefaultSeed   = 1
)

// tlsKey in the environment of TestChaos is what TIERFLOW_TLS is for the ranks: job.
const tlsKey = "TIERFLOW_TEST_TLS"

// chaosDeadline is when a case counts as hanging; the machine may be busy, and the slowest cases take 20 s on one that is.
const chaosDeadline = 4 * time.Minute

// TestChaos kills and stops ranks of jobs of random collectives. Every job must end, with right results or with errors
// that name the dead, and leave nothing behind.
func TestChaos(t *testing.T) {
	t.Parallel()
	cases, first := chaosDefault, uint64(chaosDefaultSeed)
	if testing.Short() {
		cases = chaosDefault / 4
	}
	if text := os.Getenv(chaosVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s=%q; allowed is a number of cases, from 1 on", chaosVariable, text)
		}
		cases, first = n, rand.Uint64N(1e9)
	}
	if text := os.Getenv(chaosSeedVariable); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q; allowed is a number", chaosSeedVariable, text)
		}
		first = n
	}
	phase := os.Getenv(chaosPhaseVariable)
	if phase != "" && !slices.Contains(phases, phase) {
		t.Fatalf("%s=%q; allowed are %q", chaosPhaseVariable, phase, phases)
	}
	var seeds []uint64
	for seed := first; len(seeds) < cases; seed++ {
		if phase == "" || drawCase(seed, false).fates[0].phase == phase {
			seeds = append(seeds, seed)
		}
	}
	all := playAll(t, seeds)
	t.Logf("%d deaths, %d survivors named them, %d jobs ended well", all.deaths, all.blames, all.well)
	t.Logf("%v, seeds %d to %d", all, first, seeds[len(seeds)-1])
}

// TestDeathTimes kills a rank in each phase of its life, in cases picked from TestChaos's. Deaths before a join ends are
// package join's to test.
func TestDeathTimes(t *testing.T) {
	var seeds []uint64
	for _, phase := range []string{inRun, betweenIt, inClose} {
		seed := uint64(1)
		for c := drawCase(seed, false); !(c.patient && c.rounds == 1 && c.fates[0] == fate{
			rank: c.fates[0].rank, call: c.fates[0].call, within: c.fates[0].within, phase: phase, kill: true,
		}); c = drawCase(seed, false) {
			seed++
		}
		seeds = append(seeds, seed)
	}
	if all := playAll(t, seeds); all.deaths < len(seeds) {
		t.Errorf("%d deaths in %d cases", all.deaths, len(seeds))
	}
}

// playAll plays cases, a few at a time: they mostly wait.
func playAll(t *testing.T, seeds []uint64) *tally {
	all := &tally{}
	var workers sync.WaitGroup
	next := make(chan uint64)
	for range 2 * runtime.NumCPU() {
		workers.Go(func() {
			for seed := range next {
				all.add(t, playCase(t, drawCase(seed, os.Getenv(chaosVariable) != "")))
			}
		})
	}
	for _, seed := range seeds {
		next <- seed
	}
	close(next)
	workers.Wait()
	return all
}

// verdicts are what a case can be found guilty of.
const (
	isHang = iota
	isWrong
	isUnnamed
	isLeftover
	verdicts
)

// tally counts.
type tally struct {
	mu                   sync.Mutex
	cases                int
	counts               [verdicts]int // of cases, not of ranks
	deaths, blames, well int
}

// String is the summary.
func (a *tally) String() string {
	return fmt.Sprintf("chaos: %d cases, %d hangs, %d wrong results, %d unnamed deaths, %d leftovers",
		a.cases, a.counts[isHang], a.counts[isWrong], a.counts[isUnnamed], a.counts[isLeftover])
}

func (a *tally) add(t *testing.T, o *outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cases++
	a.deaths += len(o.dead)
	a.blames += o.blames
	if o.well {
		a.well++
	}
	for v, faults := range o.faults {
		if len(faults) > 0 {
			a.counts[v]++
			t.Errorf("%v\nagain: %s=1 %s=%d\n%s\n%s", &o.c, chaosVariable, chaosSeedVariable, o.c.seed, strings.Join(faults, "\n"), o.out.String())
		}
	}
}

// outcome is what came of a case.
type outcome struct {
	c      chaosCase
	out    *buffer
	dead   []int // killed, as far as they said or we did it
	blames int
	well   bool
	faults [verdicts][]string
}

func (o *outcome) fault(verdict int, format string, args ...any) {
	o.faults[verdict] = append(o.faults[verdict], fmt.Sprintf(format, args...))
}

// playCase runs the case and judges it.
func playCase(t *testing.T, c chaosCase) *outcome {
	o := &outcome{c: c, out: &buffer{}}
	mark := fmt.Sprintf("chaos-%d-%d-", os.Getpid(), c.seed) // no other case's mark begins with it
	dir := t.TempDir()
	cmd := o.launch(t, mark, dir)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // judged by what it printed
		close(ended)
	}()
	fated := make(chan struct{})
	go func() {
		o.fulfil(mark, ended)
		close(fated)
	}()
	select {
	case <-ended:
	case <-time.After(chaosDeadline):
		o.fault(isHang, "not over after %v", chaosDeadline)
		_ = cmd.Process.Signal(syscall.SIGQUIT) // for the ranks' stacks
		select {
		case <-ended:
		case <-time.After(3 * time.Second):
		}
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	}
	<-fated
	o.judge()
	o.leftovers(mark, dir)
	return o
}

// launch starts the launcher of the case as a process of its own.
func (o *outcome) launch(t *testing.T, mark, dir string) *exec.Cmd {
	opts := o.c.opts
	opts.Program = append(rankLine(t, "chaos", strconv.FormatUint(o.c.seed, 10)), mark)
	cmd := launcherCommand(context.Background(), t, opts, o.out)
	cmd.Env = append(cmd.Env, "TMPDIR="+dir, env.Door+"="+filepath.Join(dir, "doors"))
	if tls := os.Getenv(tlsKey); tls != "" {
		cmd.Env = append(cmd.Env, "TIERFLOW_TLS="+tls)
	}
	if o.c.patient {
		cmd.Env = append(cmd.Env, graceKey+"="+chaosDeadline.String())
	}
	check(cmd.Start())
	return cmd
}

// fulfil does to the ranks what they can't do to themselves.
func (o *outcome) fulfil(mark string, ended <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range o.c.fates {
		f := &o.c.fates[i]
		all.Go(func() {
			pid := o.await(f, mark, ended)
			if pid == 0 {
				return // the case was over before
			}
			if f.stop > 0 {
				pause(f.stop)
			}
			last := syscall.SIGCONT
			if f.kill {
				last = syscall.SIGKILL
				o.out.Write(fmt.Appendf(nil, "[%d] %s\n", f.rank, sayDeath))
			}
			_ = syscall.Kill(pid, last) // it is stopped: it is there
		})
	}
}

// await waits until a rank is stopped, and stops it itself if that is to happen at the start. It returns its process id; 0
// when there is nothing left to do.
func (o *outcome) await(f *fate, mark string, ended <-chan struct{}) (pid int) {
	said := regexp.MustCompile(fmt.Sprintf(`(?m)^\[%d\] %s (\d+)$`, f.rank, sayStop))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}()
	if !poll(ctx, func() bool {
		switch {
		case f.phase == atStart && pid == 0:
			// Who is to be killed is stopped first too: it could be well and gone before the kill reaches it.
			if pid = processOf(mark, f.rank); pid != 0 {
				_ = syscall.Kill(pid, syscall.SIGSTOP) // seen a moment ago
			}
		case pid == 0:
			if m := said.FindStringSubmatch(o.out.String()); m != nil {
				pid, _ = strconv.Atoi(m[1])
			}
		default:
			return stopped(pid)
		}
		return false
	}) {
		return 0
	}
	return pid
}

// processOf finds a rank of a job.
func processOf(mark string, rank int) int {
	want := []byte(fmt.Sprintf("\x00%s=%d\x00", env.Rank, rank))
	for _, pid := range processes(mark) {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(append([]byte{0}, env...), want) {
			return pid
		}
	}
	return 0
}

// stopped tells whether a process was, by a signal.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return err == nil && bytes.HasPrefix(state, []byte("T"))
}

// A rank's last word, and the launcher's on the first rank that failed.
var (
	chaosWord   = regexp.MustCompile(`(?m)^\[(\d+)\] (chaos-\w+)(?: (\d+) \[([\d ]*)\])?(.*)$`)
	launcherSay = regexp.MustCompile(`(?m)^rank (\d+) on \S+: (.*)$`)
)

// word is one line of a rank.
type word struct {
	rank  int
	what  string
	round int   // of sayBlame
	names []int // of sayBlame
	text  string
}

// words are what the ranks said, each in its order.
func (o *outcome) words() (all []word) {
	for _, m := range chaosWord.FindAllStringSubmatch(o.out.String(), -1) {
		w := word{what: m[2], text: m[5]}
		w.rank, _ = strconv.Atoi(m[1])
		w.round, _ = strconv.Atoi(m[3])
		for _, name := range strings.Fields(m[4]) {
			rank, _ := strconv.Atoi(name)
			w.names = append(w.names, rank)
		}
		all = append(all, w)
	}
	return all
}

// judge weighs what the ranks and the launcher said.
func (o *outcome) judge() {
	last := map[int]word{} // what became of each rank
	for _, w := range o.words() {
		if last[w.rank].what == sayDeath {
			continue // an earlier word that was still on its way when we killed it
		}
		last[w.rank] = w
		if w.what == sayDeath {
			o.dead = append(o.dead, w.rank)
		}
	}
	wells := 0
	for rank, w := range last {
		switch w.what {
		case sayWell:
			wells++
		case sayWrong:
			o.fault(isWrong, "rank %d: %s", rank, w.text)
		case sayOther:
			o.fault(isUnnamed, "rank %d names nobody: %s", rank, w.text)
		case sayBlame:
			o.blames++
			o.weigh(w, last)
		case sayHere, sayStop:
			if o.c.patient {
				o.fault(isHang, "rank %d said nothing more", rank)
			}
		}
	}
	o.verdictOfLauncher(wells)
}

// weigh judges an error that names ranks. Besides the dead it may name three others. One was ended by the launcher
// before it came, or before it could pass the news on; not where ranks outlive that. One had failed in an earlier
// round, and so is not in this one. One ended because of a dead rank that had said goodbye to this rank, but not yet to
// that one.
func (o *outcome) weigh(w word, last map[int]word) {
	for _, guilty := range w.names {
		its, here := last[guilty]
		failed := its.what == sayBlame && (its.round < w.round || its.round == w.round && o.diedLeaving(its.names, w.round))
		ended := !o.c.patient && (its.what == sayHere || its.what == sayStop)
		if here && !failed && !ended && !slices.Contains(o.dead, guilty) {
			o.fault(isUnnamed, "rank %d blames rank %d, which was not killed: %s", w.rank, guilty, w.text)
		}
	}
}

// diedLeaving tells whether a rank among those died in Close.
func (o *outcome) diedLeaving(ranks []int, round int) bool {
	return slices.ContainsFunc(ranks, func(r int) bool {
		f := o.c.fateOf(r)
		return f != nil && f.phase == inClose && f.round == round && slices.Contains(o.dead, r)
	})
}

// verdictOfLauncher checks that it names a dead rank, or none when all said that they are well.
func (o *outcome) verdictOfLauncher(wells int) {
	m := launcherSay.FindStringSubmatch(o.out.String())
	switch {
	case m == nil && len(o.dead) == 0 && wells == o.c.ranks:
		o.well = true
	case m == nil:
		o.fault(isUnnamed, "the launcher names no rank; dead are %v, %d are well", o.dead, wells)
	default:
		if rank, _ := strconv.Atoi(m[1]); !slices.Contains(o.dead, rank) || !strings.HasPrefix(m[2], "ended by signal: killed") {
			o.fault(isUnnamed, "the launcher names rank %s: %s; dead are %v", m[1], m[2], o.dead)
		}
	}
}

// isDoors reports whether a folder is that of the doors of a user's jobs: tests of other packages run jobs too, some as other users.
func isDoors(name string) bool { return doorsName.MatchString(name) }

var doorsName = regexp.MustCompile(`^/dev/shm/tierflow-\d+$`)

// leftovers looks for processes and files. Shared memory has no names in the file system: it ends with the processes. The
// doors' folder is removed by the last rank or the agent.
func (o *outcome) leftovers(mark, dir string) {
	if !poll(context.Background(), func() bool { return len(processes(mark)) == 0 }) {
		o.fault(isLeftover, "processes %v", processes(mark))
		for _, pid := range processes(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // may have ended
		}
	}
	doors, _ := filepath.Glob(filepath.Join(dir, "doors", "*"))
	for _, job := range doors { // of a rank that was killed on its way in: who sweeps waits for a minute
		old := time.Now().Add(-time.Hour)
		_ = os.Chtimes(job, old, old)
	}
	door.Sweep(filepath.Join(dir, "doors"))
	temporary, _ := filepath.Glob(filepath.Join(dir, "*"))
	shared, _ := filepath.Glob("/dev/shm/*tierflow*")
	shared = slices.DeleteFunc(shared, isDoors)
	if files := append(temporary, shared...); len(files) > 0 {
		o.fault(isLeftover, "files %v", files)
	}
}
