package doctor

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/costs/pairs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/seal/sealtest"
)

func TestAlone(t *testing.T) {
	text := tierflow.Succeeds(t, "doctor")
	if !strings.HasPrefix(text, "well") || !strings.Contains(text, "started by          none") {
		t.Errorf("%s", text)
	}
	r := kittest.Decode[report](t, tierflow.Succeeds(t, "doctor", "--json"))
	if !r.Healthy || len(r.Ranks) != 1 || r.Ranks[0].PID != os.Getpid() || len(r.Ranks[0].Addresses) == 0 || r.Ranks[0].CPUCount < 1 {
		t.Errorf("%+v", r)
	}
}

// What the environment lacks is a problem, and the host is described all the same.
func TestIncompleteEnvironment(t *testing.T) {
	t.Setenv("SLURM_STEP_NUM_TASKS", "4")
	t.Setenv("SLURM_PROCID", "2")
	s := tierflow.Run(t, "doctor")
	if s.Status != 1 || !strings.HasPrefix(s.Out, "not well, 1 problem") || !strings.Contains(s.Out, "TIERFLOW_SECRET is missing") ||
		!strings.Contains(s.Out, "started by          slurm") || s.Errors != "tierflow doctor: 1 problem\n" {
		t.Errorf("%+v", s)
	}
}

// A rank whose peer doesn't come says so in the time that it was given.
func TestNobodyComes(t *testing.T) {
	for name, value := range place(t, 0, 2) {
		t.Setenv(name, value)
	}
	t.Setenv("TIERFLOW_JOIN_TIMEOUT", "1s")
	s := tierflow.Run(t, "doctor")
	if s.Status != 1 || !strings.Contains(s.Out, "  problem: join: rank 1 did not join within") {
		t.Errorf("%+v", s)
	}
}

// place returns the variables of one of some ranks.
func place(t *testing.T, rank, size int) map[string]string {
	t.Helper()
	return map[string]string{
		"TIERFLOW_RANK": fmt.Sprint(rank), "TIERFLOW_SIZE": fmt.Sprint(size),
		"TIERFLOW_RENDEZVOUS": rendezvous(t), "TIERFLOW_SECRET": "x",
	}
}

// rendezvous returns an address at which nobody listens.
func rendezvous(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// lenient lets machines of any speed be well.
var lenient = []string{"doctor", "--expect", "s=1kbit,1m", "--expect", "i=1kbit,1m"}

// launch starts ranks of the command, on nodes of two, and returns what each printed.
func launch(t *testing.T, n int, args ...string) []kittest.Said {
	t.Helper()
	return launchAs(t, make([]string, n), args...)
}

// launchAs is launch with more variables for each rank.
func launchAs(t *testing.T, more []string, args ...string) []kittest.Said {
	t.Helper()
	n := len(more)
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	at, said, outs := rendezvous(t), make([]kittest.Said, n), make([][2]bytes.Buffer, n)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	all := make([]*exec.Cmd, n)
	for r := range all {
		c := exec.CommandContext(ctx, os.Args[0], args...)
		c.Env = append(os.Environ(), asRank+"=1", fmt.Sprint("TIERFLOW_NODE=n", r/2))
		for name, value := range place(t, r, n) {
			c.Env = append(c.Env, name+"="+value)
		}
		c.Env = append(c.Env, "TIERFLOW_RENDEZVOUS="+at, more[r])
		c.Stdout, c.Stderr = &outs[r][0], &outs[r][1]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all[r] = c
	}
	for r, c := range all {
		_ = c.Wait() // the status tells
		said[r] = kittest.Said{Status: c.ProcessState.ExitCode(), Out: outs[r][0].String(), Errors: outs[r][1].String()}
	}
	return said
}

func TestJob(t *testing.T) {
	for r, s := range launch(t, 4, append(lenient, "--json")...) {
		if s.Status != 0 || s.Errors != "" || (r > 0) != (s.Out == "") {
			t.Fatalf("rank %d: %+v", r, s)
		}
		if r > 0 {
			continue
		}
		r := kittest.Decode[report](t, s.Out)
		if !r.Healthy || r.Nodes != 2 || len(r.Ranks) != 4 || len(r.Pairs) != 6 || len(r.Levels) != 2 {
			t.Errorf("%s", s.Out)
		}
		for _, p := range r.Pairs {
			if p.Latency <= 0 || p.First <= 0 || p.Out <= 0 || p.Back <= 0 {
				t.Errorf("%+v", p)
			}
		}
		for i, f := range r.Ranks {
			reached := 0
			for _, way := range f.Routes {
				reached += way.Ranks
			}
			if f.Rank != i || f.Node != fmt.Sprint("n", i/2) || reached != 3 || f.Launcher != "tierflow" {
				t.Errorf("rank %d: %+v", i, f)
			}
		}
	}
}

// A sealed job says with what, and until when certificates hold.
func TestSealedJob(t *testing.T) {
	ca, err := sealtest.NewAuthority("train-ca")
	if err != nil {
		t.Fatal(err)
	}
	option, err := ca.Write(t.TempDir(), sealtest.Leaf{Name: "ranks.train"})
	if err != nil {
		t.Fatal(err)
	}
	said := launchAs(t, []string{"TIERFLOW_TLS=" + option, "TIERFLOW_TLS=" + option, "TIERFLOW_TLS=" + option}, lenient...)
	for _, want := range []string{"between nodes       TLS 1.3, X25519MLKEM768, AES-128-GCM, by certificates of CN=train-ca with names like ranks.train; this rank's holds until ", "; a core seals about ", "rank 2 (", "its certificate expires in 1h0m0s"} {
		if said[0].Status != 0 || !strings.Contains(said[0].Out, want) {
			t.Errorf("without %q: %+v", want, said[0])
		}
	}
}

// Pairs that are slower than --expect says are a problem, and rank 0's status.
func TestSlowJob(t *testing.T) {
	for r, s := range launch(t, 2, "doctor", "--expect", "s=1000tbit,1ns") {
		switch {
		case r > 0 && (s.Status != 0 || s.Out != ""):
			t.Errorf("rank %d: %+v", r, s)
		case r == 0 && (s.Status != 1 || !strings.Contains(s.Out, "\n  problem: 1 of 1 pairs of level node are slower than 1.25e+05 GB/s, 1ns: r0-r1")):
			t.Errorf("%+v", s)
		}
	}
}

// A rank that dies is named, with its host, by all others.
func TestDeath(t *testing.T) {
	host, _ := os.Hostname()
	for r, s := range launchAs(t, []string{"", "", asRank + "=dies"}, lenient...) {
		if want := fmt.Sprintf("\n  problem: rank 2 (%s) was lost", host); r < 2 && (s.Status != 1 || !strings.HasPrefix(s.Out, "not well") || !strings.Contains(s.Out, want)) {
			t.Errorf("rank %d: %+v; want %q", r, s, want)
		}
	}
}

// A rank that has left is not reached.
func TestReach(t *testing.T) {
	at := rendezvous(t)
	jobs, errs := make([]*join.Job, 2), make(chan error, 2)
	for r := range jobs {
		go func() {
			var err error
			jobs[r], err = join.Join(t.Context(), join.Config{Rank: levels.Rank(r), Size: 2, Rendezvous: []string{at}, Secret: "x"})
			errs <- err
		}()
	}
	for range jobs {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	var f [3]facts
	for r, j := range jobs {
		f[r].reach(t.Context(), j)
		if len(f[r].Unreached) != 0 || len(f[r].Routes) != 1 || f[r].Routes[0].Why != "loopback of one host" {
			t.Errorf("%+v", f[r])
		}
	}
	for _, j := range jobs {
		go func() { errs <- j.Close(t.Context()) }()
	}
	for range jobs {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if f[2].reach(t.Context(), jobs[0]); len(f[2].Unreached) != 1 || f[2].Unreached[0].Rank != 1 || !strings.Contains(f[2].Unreached[0].Why, "job is closed") {
		t.Errorf("%+v", f[2])
	}
}

func TestWrongFlags(t *testing.T) {
	tierflow.RefusesAll(t, "doctor", map[string]string{
		"--expect=x=1gbit": "levels are m, s, i and w",
		"--expect=i":       "give LEVEL=RATE,LATENCY",
		"--expect=i=fast":  "one rate",
		"--time=0s":        "give a time up to 1h",
	})
}

func TestVisitEncoding(t *testing.T) {
	v := visit{1, 2, pairs.Visit{First: 3, Latency: 4, Out: 5e9, Back: 6, Ahead: -7}}
	if got := decodeVisit(v.encode()); got != v {
		t.Errorf("%+v; want %+v", got, v)
	}
}

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		fmt.Sprint(quota("150000 100000")):           "1.5",
		fmt.Sprint(quota("max 100000")):              "0",
		fmt.Sprint(quota("")):                        "0",
		rankList([]int{0, 1, 2, 5, 7, 8}):            "ranks 0-2,5,7-8",
		rankList([]int{4}):                           "rank 4",
		size(3 << 29):                                "1.5 GiB",
		size(-1):                                     "unlimited",
		roundTime(123456 * time.Nanosecond).String(): "123µs",
		kit.RateText(1.5e6):                          "1.5 MB/s",
		ordinal(3):                                   "4th",
	} {
		if got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
