package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/levels/join/env"
)

// playing is a case while it runs.
type playing struct {
	faultCase
	dir    string
	nodes  string // of its emulated cluster; empty: there is none
	out    buffer
	struck atomic.Int64 // when the fault began, Unix time in ns; 0: not yet
}

// told is what a case has led to.
type told struct {
	found *verdict.Finding // the first one; nil: there is none
	after time.Duration    // the fault; 0: unknown
	text  string           // what everybody said
}

// mostPlayed bounds a case.
const mostPlayed = 4 * time.Minute

// play runs the job until it ends, or somebody knows what is wrong.
func (c faultCase) play(t *testing.T, dir string) told {
	ctx, cancel := context.WithTimeout(t.Context(), mostPlayed)
	defer cancel()
	p := &playing{faultCase: c, dir: dir}
	if c.fault.cluster {
		if !p.makeCluster(t) {
			return told{text: "no cluster can be made"}
		}
		defer p.removeCluster(t)
	}
	cmd := p.command(ctx, t)
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return told{}
	}
	over, ended := context.WithCancel(ctx)
	var watching sync.WaitGroup
	var asked told
	watching.Go(func() { p.hurt(over, t) })
	watching.Go(func() {
		if asked = p.ask(over, t); asked.found != nil {
			cancel()
		}
	})
	watching.Go(func() { // a job that stands still has to be ended
		if poll(over, func() bool { _, err := os.Stat(filepath.Join(p.dumps(), "verdict.txt")); return err == nil }) {
			poll(over, func() bool { return strings.Contains(p.out.String(), `verdict="`) }) // it is logged after it is kept
			cancel()
		}
	})
	err := cmd.Wait()
	ended()
	watching.Wait()
	return p.judge(t, err, asked)
}

func (p *playing) dumps() string { return filepath.Join(p.dir, "dumps") }

// command starts the launcher, on the first node of the cluster if there is one.
func (p *playing) command(ctx context.Context, t *testing.T) *exec.Cmd {
	n := slices.IndexFunc(faults, func(f fault) bool { return f.name == p.name })
	opts := p.opts
	opts.DumpDir = p.dumps()
	opts.Program = rankLine(t, "faulty", strconv.Itoa(n), strconv.FormatUint(p.seed, 10))
	var before []string
	if p.nodes != "" {
		opts.Launcher = clusterScript(t) + " rsh --name " + p.nodes
		before = []string{clusterScript(t), "exec", "--name", p.nodes, "0"}
	}
	cmd := launcherCommand(ctx, t, opts, &p.out, before...)
	cmd.Env = append(cmd.Env, env.DumpDir+"="+p.dumps(), env.Door+"="+p.doors(), graceKey+"=1s")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

func (p *playing) doors() string { return filepath.Join(p.dir, "doors") }

// clusterScript is the path of what makes emulated clusters.
func clusterScript(t *testing.T) string {
	script, err := filepath.Abs("../../../testdata/cluster/cluster")
	if err != nil {
		t.Error(err)
	}
	return script
}

// clusters numbers emulated clusters.
var clusters atomic.Int64

func (p *playing) makeCluster(t *testing.T) bool {
	n := clusters.Add(1)
	p.nodes = fmt.Sprintf("v%x-%c%c", os.Getpid()&0xfffff, 'a'+n/26%26, 'a'+n%26)
	out, err := exec.Command(clusterScript(t), "up", strconv.Itoa(clusterNodes), "--rate", "1gbit", "--name", p.nodes).CombinedOutput()
	if err != nil {
		t.Errorf("cluster up: %v\n%s", err, out)
	}
	return err == nil
}

func (p *playing) removeCluster(t *testing.T) {
	if out, err := exec.Command(clusterScript(t), "down", "--name", p.nodes).CombinedOutput(); err != nil {
		t.Errorf("cluster down: %v\n%s", err, out)
	}
}

// struckLine is what a rank says when the fault begins.
var struckLine = regexp.MustCompile(`struck (\d+)`)

// hurt waits for the fault, and lets it happen where it happens to a node.
func (p *playing) hurt(ctx context.Context, t *testing.T) {
	if p.want == 0 {
		return
	}
	if !poll(ctx, func() bool {
		text := p.out.String()
		if m := struckLine.FindStringSubmatch(text); m != nil {
			at, _ := strconv.ParseInt(m[1], 10, 64)
			p.struck.Store(at)
			return true
		}
		return p.nodes != "" && strings.Contains(text, "begun")
	}) || p.struck.Load() != 0 {
		return
	}
	pause(time.Duration(rand.New(rand.NewPCG(p.seed, 3)).IntN(1000)) * time.Millisecond)
	words := []string{"ip", "-n", fmt.Sprint(p.nodes, p.victim), "link", "set", "eth0", "down"}
	if p.name == "slow node" { // what it sends, or what it is sent, has a twentieth of the rate
		words = []string{"tc", "-n", fmt.Sprint(p.nodes, p.victim), "qdisc", "change", "dev", "eth0"}
		if p.seed%2 == 1 {
			words = []string{"tc", "-n", p.nodes + "br", "qdisc", "change", "dev", fmt.Sprint("port", p.victim)}
		}
		words = append(words, strings.Fields("root handle 1: tbf rate 50mbit burst 20kb latency 50ms")...)
	}
	p.struck.Store(time.Now().UnixNano())
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Errorf("%q: %v\n%s", words, err, out)
	}
}

// ask asks a job that moves what is wrong with it, again and again, until something is. What
// has gone on for less than StallAfter doesn't count.
func (p *playing) ask(ctx context.Context, t *testing.T) (o told) {
	for p.asked && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		if p.want > 0 && (p.struck.Load() == 0 || p.since(time.Now()) < 3*time.Second) {
			continue
		}
		cmd := exec.CommandContext(ctx, self(t), "diagnose", "diagnose", "--json", "--least", stallAfter.String())
		cmd.Env = append(os.Environ(), env.Door+"="+p.doors())
		text, _ := cmd.Output() // a finding is an error
		said := struct{ Findings []verdict.Finding }{}
		if ctx.Err() == nil && json.Unmarshal(text, &said) == nil && len(said.Findings) > 0 { // else the job is being ended
			return told{&said.Findings[0], p.since(time.Now()), string(text)}
		}
	}
	return o
}

// since is how long after the fault a moment is.
func (p *playing) since(t time.Time) time.Duration {
	if at := p.struck.Load(); at != 0 {
		return t.Sub(time.Unix(0, at))
	}
	return 0
}

// judge reads what the job has found out by itself, or else what it was asked.
func (p *playing) judge(t *testing.T, err error, asked told) told {
	o := told{text: fmt.Sprintf("%s\n%v\n%s", p.out.String(), err, asked.text)}
	if asked.found != nil { // what is kept is of a job that was ended
		asked.text = o.text
		return asked
	}
	all, unread := door.ReadSnapshots(p.dumps())
	if unread != nil {
		return o
	}
	states, found := door.Diagnose(all, stallAfter/2)
	for _, s := range states {
		o.text += fmt.Sprintf("\nrank %d: %v", s.Rank, &s)
	}
	if len(found) == 0 {
		return o
	}
	o.found = &found[0]
	first := slices.MinFunc(all, func(a, b door.Snapshot) int { return a.Taken.Compare(b.Taken) })
	o.after = p.since(first.Taken)
	if word := found[0].Class.String() + ": "; p.want > 0 && first.Found != nil && first.Began.IsZero() && !strings.Contains(o.text, `verdict="`+word) {
		t.Errorf("%s, seed %d: the job has not logged %s itself\n%s", p.name, p.seed, word, o.text)
	}
	return o
}

// tallied is what was found of one fault.
type tallied struct {
	right, played int
	columns       map[string]int // by class, of what was wrong
	after         []time.Duration
}

// note counts what was told, and complains of a wrong one.
func (y *tallied) note(t *testing.T, c *faultCase, o told) {
	y.played++
	column := "nothing"
	if o.found != nil {
		column = o.found.Class.String()
	}
	switch {
	case c.isRight(o.found):
		y.right++
		if o.after > 0 {
			y.after = append(y.after, o.after)
		}
		return
	case o.found == nil:
		t.Errorf("%s, seed %d: nothing found, want %v of %v\n%s", c.name, c.seed, c.want, c.blamed(), o.text)
	default:
		if o.found.Class == c.want {
			column += " of other ranks"
		}
		t.Errorf("%s, seed %d: found %v of %v, want %v of %v\n%s", c.name, c.seed, o.found, o.found.Ranks, c.want, c.blamed(), o.text)
	}
	y.columns[column]++
}

// quantile returns the time that a share of all was below.
func quantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(len(all)-1, int(share*float64(len(all))))].Round(10 * time.Millisecond)
}

// Faults that are injected into jobs of random collectives are found by the job itself: their
// class, and the ranks to blame. Jobs in which nothing is wrong are left alone. With
// TIERFLOW_TEST_SEEDS=40 there are 40 seeds of each, and 200 healthy jobs; 21-40 are the second
// half. Jobs that move are asked by tierflow diagnose then, and emulated clusters join: what is found there depends on what else
// the machine does. TIERFLOW_TEST_FAULTS names some of the faults, with commas.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	first, last := uint64(1), uint64(2)
	if text := os.Getenv("TIERFLOW_TEST_SEEDS"); text != "" {
		from, to, both := strings.Cut(text, "-")
		if !both {
			from, to = "1", from
		}
		var bad [2]error
		first, bad[0] = strconv.ParseUint(from, 10, 64)
		last, bad[1] = strconv.ParseUint(to, 10, 64)
		if err := errors.Join(bad[:]...); err != nil {
			t.Fatalf("TIERFLOW_TEST_SEEDS: %v", err)
		}
	}
	named := os.Getenv("TIERFLOW_TEST_FAULTS")
	table := map[string]*tallied{}
	var mu sync.Mutex
	for _, beside := range []int{4, 2, 1} {
		var jobs sync.WaitGroup
		slots := make(chan struct{}, beside)
		if !isFull() {
			slots = make(chan struct{}, 2*beside) // they mostly wait
		}
		for _, f := range faults {
			if f.jobs != beside || !isFull() && (f.cluster || f.asked) || named != "" && !slices.Contains(strings.Split(named, ","), f.name) {
				continue
			}
			of := &tallied{columns: map[string]int{}}
			table[f.name] = of
			from, to := first, last
			if f.want == 0 && isFull() {
				from, to = 5*(first-1)+1, 5*last
			}
			for seed := from; seed <= to; seed++ {
				slots <- struct{}{}
				dir, err := os.MkdirTemp("", "faults") // sockets have short names
				if err != nil {
					t.Fatal(err)
				}
				jobs.Go(func() {
					defer os.RemoveAll(dir)
					defer func() { <-slots }()
					c := drawFault(f, seed)
					o := c.play(t, dir)
					mu.Lock()
					defer mu.Unlock()
					of.note(t, &c, o)
				})
			}
		}
		jobs.Wait()
	}
	printTable(t, table)
}

// printTable logs what was taken for what.
func printTable(t *testing.T, table map[string]*tallied) {
	right, played := 0, 0
	var after []time.Duration
	for _, f := range faults {
		y := table[f.name]
		if y == nil {
			continue
		}
		t.Logf("%-22s %-12v %3d of %3d right, found after %v, p95 %v; wrong: %v", f.name, f.want, y.right, y.played, quantile(y.after, 0.5), quantile(y.after, 0.95), y.columns)
		if f.want > 0 {
			right, played, after = right+y.right, played+y.played, append(after, y.after...)
		}
	}
	t.Logf("%d of %d faults right, p95 %v", right, played, quantile(after, 0.95))
}
