package launch

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
)

func init() {
	rankPrograms["spin"] = spin
	rankPrograms["circle"] = circle
	rankPrograms["halt"] = halt
	rankPrograms["notified"] = notified
	rankPrograms["tardy"] = tardy
}

// enterJob joins, calls a barrier and says that this is done.
func enterJob() *planner.Comm {
	comm, err := planner.Join(context.Background(), &planner.Options{StallAfter: time.Second})
	check(err)
	check(planner.Barrier(context.Background(), comm))
	fmt.Println("joined")
	return comm
}

// spin lets rank 2 compute for ever while the others wait for it.
func spin([]string) {
	comm := enterJob()
	for n := 0; comm.Rank() == 2; n++ {
		if n < 0 {
			fmt.Println(n)
		}
	}
	check(planner.Barrier(context.Background(), comm))
}

// halt lets rank 2 stop, and rank 3 alone wait for it.
func halt([]string) {
	comm := enterJob()
	switch comm.Rank() {
	case 2:
		check(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
	case 3:
		_, err := planner.Recv(context.Background(), comm, 2, 5, make([]int32, 1))
		check(err)
	}
	pause(time.Hour)
}

// circle lets each rank receive from the next one.
func circle([]string) {
	comm := enterJob()
	_, err := planner.Recv(context.Background(), comm, (comm.Rank()+1)%comm.Size(), 5, make([]int32, 1))
	check(err)
}

// tardy lets rank 2 come when it knows that the others have given it up, and all print what they hear.
func tardy([]string) {
	comm := enterJob()
	if comm.Rank() == 2 {
		under, _, err := raw.Under(comm)
		check(err)
		poll(context.Background(), func() bool { return under.Err() != nil })
	}
	fmt.Printf("heard %v\n", planner.Barrier(context.Background(), comm))
	check(comm.Close())
}

// notified is a program that handles SIGQUIT itself.
func notified([]string) {
	enterJob()
	quits := make(chan os.Signal, 8)
	signal.Notify(quits, syscall.SIGQUIT)
	fmt.Println("handles")
	<-quits
	<-quits // which would have ended a program without a handler
	fmt.Println("has handled")
	os.Exit(7)
}

func needsProcesses(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
}

// says checks that a text has lines of patterns.
func says(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(text) {
			t.Errorf("no %s in\n%s", p, text)
		}
	}
}

// When its time is over a job says for each rank what it is in and where it stands.
func TestTimeoutSaysWhoWasWhere(t *testing.T) {
	needsProcesses(t)
	doors := makeDoors(t)
	out, r := &buffer{}, &result{}
	j, _, err := prepare(Options{Ranks: 4, Oversubscribe: true, Timeout: time.Hour, Program: rankLine(t, "spin")}, nil, out, out)
	if err != nil {
		t.Fatal(err)
	}
	over, answered := make(chan time.Time), make(chan time.Time)
	j.after = func(d time.Duration) <-chan time.Time {
		if d == time.Hour {
			return over
		}
		return answered
	}
	var scripted sync.WaitGroup
	scripted.Go(func() {
		awaitStanding(t, doors, 0, 1, 3)
		over <- time.Now()
		for rank := range 4 {
			out.awaitLong(t, 1, fmt.Sprintf("rank %d: in", rank))
		}
		answered <- time.Now()
	})
	j.loop(t.Context())
	scripted.Wait()
	r.status, r.err = j.result()
	r.want(t, statusTimeout, "ended after 1h0m0s: ranks 0-3 of 4 were running")
	text := out.String()
	says(t, text, `rank 2: in no call after barrier #\d+, at most \d\.\d s ago, at launch\.spin states_linux_test\.go:\d+( \([a-z ]+\))?$`)
	for _, rank := range []int{0, 1, 3} {
		says(t, text, fmt.Sprintf(`rank %d: in barrier #\d+, for \d\.\d s, at launch\.spin states_linux_test\.go:\d+( \([a-z ]+\))?$`, rank))
	}
	if strings.Contains(text, "goroutine 1 ") {
		t.Errorf("stacks in\n%s", text)
	}
}

// Without having been asked for in advance, SIGQUIT says what each rank is in and where;
// then Go prints the stacks and ends the process. The status is left open: Go walks the stacks of goroutines
// while they may run, and where such a walk faults the process ends by SIGSEGV in place of status 2.
func TestQuitSaysWhoWasWhere(t *testing.T) {
	needsProcesses(t)
	doors := makeDoors(t)
	cmd, out := startLauncher(t, Options{Ranks: 4, Oversubscribe: true, Program: rankLine(t, "circle")})
	awaitStanding(t, doors, 0, 1, 2, 3)
	cmd.Process.Signal(syscall.SIGQUIT)
	if err := cmd.Wait(); err == nil {
		t.Errorf("ended well\n%s", out)
	}
	// The launcher ends the job with the first rank: at least that one has said all.
	says(t, out.String(), `rank \d, receive from rank \d, tag 5, at launch\.circle states_linux_test\.go:\d+( \([a-z ]+\))?$`, `^\[\d\] goroutine \d+ \([^()]+\): launch\.circle states_linux_test\.go:\d+, in launch\.`, `^\[\d\] The rest is Go's: .*$`, `SIGQUIT: quit`, `goroutine \d+ `)
}

// Rank 0 logs what another rank has found, although the rank between the two in the control tree is the stopped one, and
// nobody can be asked from outside.
func TestVerdictPassesTheStopped(t *testing.T) {
	needsProcesses(t)
	_, out := startLauncher(t, Options{Hosts: "a:2,b:2", Launcher: "local", Export: []string{env.Managed + "=0"}, Program: rankLine(t, "halt")})
	out.awaitLong(t, 1, `verdict="stopped: `)
	says(t, out.String(), `^\[0\] .*verdict="stopped: .*rank 2`)
}

// A program that handles SIGQUIT itself goes on.
func TestQuitIsLeftToTheProgram(t *testing.T) {
	needsProcesses(t)
	cmd, out := startLauncher(t, Options{Ranks: 1, Program: rankLine(t, "notified")})
	out.awaitLong(t, 1, "handles")
	cmd.Process.Signal(syscall.SIGQUIT)
	wantStatus(t, cmd, out, 7) // the program's
	says(t, out.String(), `rank 0: in no call after barrier #\d+, .* at launch\.notified states_linux_test\.go:\d+( \([a-z ]+\))?$`, `has handled`)
}

// Of processes with a limit for calls all hear which rank is late, and of no other one.
func TestProcessesNameTheLate(t *testing.T) {
	needsProcesses(t)
	t.Setenv(env.CallTimeout, "700ms")
	launches := 1
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		launches = 20
	}
	for range launches {
		r := run(t, Options{Ranks: 4, Oversubscribe: true, Env: os.Environ(), Program: rankLine(t, "tardy")})
		r.want(t, 0)
		text := r.stdout.String()
		says(t, text, `\[2\] heard start barrier: communicator is broken: barrier: rank 2 has not come( for 0\.\d s)?, it is in no call after barrier #0,`)
		named := regexp.MustCompile(`heard .*barrier: rank 2 has not come( for 0\.\d s)?, it is in no call after barrier #0, at most \d\.\d s ago, at launch\.\w+ \w+_test\.go:\d+( \([a-z ]+\))?: the limit of 700ms`)
		if n := len(named.FindAllString(text, -1)); n != 4 {
			t.Errorf("%d of 4 ranks name rank 2 in\n%s", n, text)
		}
		if other := regexp.MustCompile(`heard .*rank [013] `).FindString(text); other != "" {
			t.Errorf("another rank is named: %s", other)
		}
	}
}

// Processes that all receive from the next one report a deadlock once, and their recordings
// say what they are in.
func TestProcessesReportDeadlock(t *testing.T) {
	needsProcesses(t)
	dir := t.TempDir()
	t.Setenv(env.Recorder, dir+"/job.%r")
	cmd, out := startLauncher(t, Options{Ranks: 4, Oversubscribe: true, Program: rankLine(t, "circle")})
	out.awaitLong(t, 1, `WARN stalled verdict=`)
	out.awaitLong(t, 4, `WARN stalled rank=`)
	cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait() // a rank may hear of another one's end before its own
	says(t, out.String(), `WARN stalled rank=3 request="receive from rank 0, tag 5" waits="a message" for=\d.* missing=r0$`,
		`^\[0\] .*WARN stalled verdict="deadlock: rank 0 is in receive from rank 1, tag 5, for \d\.\d s, at launch\.circle states_linux_test\.go:\d+; rank 1 is in .*; rank 2 is in .*; rank 3 is in receive from rank 0, tag 5,`)
	for rank := range 4 { // one that writes last may have seen the others end
		name := fmt.Sprintf("%s/job.%d", dir, rank)
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := flight.ReadRecording(name, data)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := flight.Print(&b, []*flight.Recording{rec}, 0); err != nil {
			t.Fatal(err)
		}
		says(t, b.String(), fmt.Sprintf(`^rank %d: (receive from rank %d, tag 5: waits since |broke at )`, rank, (rank+1)%4), `wait +for rank \d +tag 5, 4 bytes$`)
	}
}

// makeDoors makes a folder for the doors of a test's ranks: names of sockets are short.
func makeDoors(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "doors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv(env.Door, dir)
	return dir
}

// awaitStanding waits until ranks of the job with these doors have stood still in a call for long enough to say how long.
func awaitStanding(t *testing.T, doors string, ranks ...int) {
	t.Helper()
	eventually(t, func() error {
		jobs, err := door.Jobs(doors)
		if err != nil || len(jobs) != 1 {
			return fmt.Errorf("%d jobs, %v", len(jobs), err)
		}
		for _, rank := range ranks {
			if !jobs[0].Has(rank) {
				return fmt.Errorf("rank %d has no door", rank)
			}
		}
		for _, info := range jobs[0].Ranks {
			if !slices.Contains(ranks, info.Rank) {
				continue
			}
			a, err := info.Ask(t.Context(), door.Question{})
			if err != nil {
				return err
			}
			for _, s := range a.States {
				if s.Rank == info.Rank && (len(s.Open) == 0 || s.Open[0].For == 0) {
					return fmt.Errorf("rank %d: %v", s.Rank, &s)
				}
			}
		}
		return nil
	})
}

// awaitLong is await on a machine that is busy.
func (b *buffer) awaitLong(t *testing.T, n int, text string) {
	t.Helper()
	eventually(t, func() error {
		if got := b.String(); strings.Count(got, text) < n {
			return fmt.Errorf("want %d × %q in %q", n, text, got)
		}
		return nil
	})
}
