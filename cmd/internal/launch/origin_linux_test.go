package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func init() {
	rankPrograms["doomed"] = doomed
	rankPrograms["doomed-goroutines"] = doomedGoroutines
	rankPrograms["blaming"] = blaming
}

// doom is how rank 1 of four ends between two calls, and what must be said of it.
type doom struct {
	end  func(c *planner.Comm)
	text string // what it prints itself; empty: nothing
	hear string // what the other ranks say, a pattern
}

const (
	lostDoom = `rank 1 failed: was lost`
	// Who has not come to the call when another one fails in it may only hear of that one's end.
	leftDoom = `rank 1 has closed, it won't come to allreduce 2 f32 sum #1|rank [023] failed: was lost`
)

var dooms = map[string]doom{
	"panic":       {func(*planner.Comm) { panic("boom") }, "panic: boom", `rank 1 panicked: boom`},
	"fatal":       {func(*planner.Comm) { log.Fatal("boom") }, "boom", lostDoom},
	"exit":        {func(*planner.Comm) { os.Exit(3) }, "", lostDoom},
	"kill":        {func(*planner.Comm) { syscall.Kill(os.Getpid(), syscall.SIGKILL) }, "", lostDoom},
	"goexit":      {func(*planner.Comm) { runtime.Goexit() }, "", `rank 1 ended its goroutine`},
	"elsewhere":   {func(*planner.Comm) { go func() { panic("boom") }(); select {} }, "panic: boom", lostDoom},
	"closed":      {func(c *planner.Comm) { c.Close(); log.Fatal("boom") }, "boom", leftDoom},
	"leaves":      {func(c *planner.Comm) { c.Close(); os.Exit(0) }, "", leftDoom},
	"nil pointer": {func(*planner.Comm) { var p *int; *p = 1 }, "panic: runtime error: invalid memory address", `rank 1 panicked: runtime error: invalid memory address`},
}

// mainDooms are those that every launcher is tried with.
var mainDooms = []string{"panic", "fatal", "exit", "kill"}

// doomed is the program of README, of which rank 1 ends as args[0] says.
func doomed(args []string) {
	ctx := context.Background()
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer comm.Close()
	if err := sumUntilDoom(ctx, comm, dooms[args[0]]); err != nil {
		log.Fatal(err)
	}
}

func sumUntilDoom(ctx context.Context, comm *planner.Comm, d doom) error {
	grads := []float32{1, float32(comm.Rank())}
	sum, err := planner.PrepareAllreduce(ctx, comm, grads, grads, tasks.Sum)
	if err == nil {
		err = sum.Run(ctx)
	}
	if err == nil && comm.Rank() == 1 {
		d.end(comm)
	}
	if err == nil {
		err = sum.Run(ctx)
	}
	return err
}

// doomedGoroutines is doomed on goroutine ranks. Any of them ends the process with an error.
func doomedGoroutines(args []string) {
	comms, err := planner.Local("1x4", nil)
	check(err)
	var all sync.WaitGroup
	for _, comm := range comms {
		all.Go(func() {
			defer comm.Close()
			if err := sumUntilDoom(context.Background(), comm, dooms[args[0]]); err != nil {
				log.Fatal(err)
			}
		})
	}
	all.Wait()
}

// launches is how often each ending is tried.
func launches(few int) int {
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		return 100
	}
	return few
}

// However rank 1 ends, and whoever ends first, the launcher's error names rank 1.
func TestFirstFailureIsNamed(t *testing.T) {
	t.Parallel()
	for how, d := range dooms {
		t.Run(how, func(t *testing.T) {
			named := 0
			for range launches(2) {
				r := run(t, Options{Ranks: 4, Program: rankLine(t, "doomed", how)})
				failed, ok := errors.AsType[*RankError](r.err)
				told := ok && failed.Rank == 1 && strings.Contains(strings.Join(failed.Tail, "\n"), d.text)
				if !told || r.status == 0 || !d.isTold(t, r.stderr.String()) {
					t.Errorf("status %d, %v\n%s", r.status, r.err, r.stderr.String())
					continue
				}
				named++
			}
			t.Logf("%d of %d named", named, launches(2))
		})
	}
}

// The rank at the end of a row of blames gets no signal before it is known, and speaks for itself.
func TestOriginIsHeard(t *testing.T) {
	defer func(usual time.Duration) { newsGrace = usual }(newsGrace)
	newsGrace = forever
	r := run(t, Options{Ranks: 4, Program: rankLine(t, "blaming", t.TempDir())})
	r.want(t, 5, "rank 1 on localhost: exit status 5; its last lines:\n  boom")
}

// blaming ends as rank 2 because of rank 0, as rank 0 because of rank 1, and as rank 1 by itself, one
// after the other: each leaves its process id in the folder args[0]. Rank 3 goes on.
func blaming(args []string) {
	before := map[int]int{0: 2, 1: 0} // whose end a rank awaits
	if other, waits := before[rank()]; waits {
		poll(context.Background(), func() bool { return isGone(filepath.Join(args[0], strconv.Itoa(other))) })
	}
	if rank() == 3 {
		pause(forever)
	}
	check(os.WriteFile(filepath.Join(args[0], strconv.Itoa(rank())), []byte(strconv.Itoa(os.Getpid())), 0o600))
	if because, has := map[int]levels.Rank{2: 0, 0: 1}[rank()]; has {
		launcher.Blamer(launcher.NewVars(os.Getenv))(launcher.Blame{Rank: because, Why: "was lost"})
		os.Exit(1)
	}
	fmt.Println("boom")
	os.Exit(5)
}

// isGone reports whether a process has left its id in a file, and has ended since.
func isGone(file string) bool {
	text, err := os.ReadFile(file)
	pid, wrong := strconv.Atoi(string(text))
	return err == nil && wrong == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// isTold reports whether what ranks have printed tells of rank 1's end, and blames nobody
// else. A launcher may have ended the other ranks before they could speak.
func (d doom) isTold(t *testing.T, output string) bool {
	t.Helper()
	told := strings.Contains(output, d.text)
	if strings.HasPrefix(d.text, "panic") {
		told = told && strings.Contains(output, "origin_linux_test.go:")
	}
	for _, blame := range regexp.MustCompile(`rank \d+ (failed|panicked|ended|has closed).*`).FindAllString(output, -1) {
		told = told && regexp.MustCompile(d.hear).MatchString(blame)
	}
	return told
}

// Under launchers of others the ranks' own output says who it was: the label of rank 1's last
// words, or what the others say.
func TestFirstFailureIsNamedUnderOthers(t *testing.T) {
	t.Parallel()
	for _, launcher := range []struct {
		name string
		line []string
	}{
		{"mpiexec.hydra", []string{"-prepend-rank", "-n", "4"}},
		{"mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe", "--tag-output", "-n", "4"}},
	} {
		for _, how := range mainDooms {
			t.Run(launcher.name+"/"+how, func(t *testing.T) {
				if _, err := exec.LookPath(launcher.name); err != nil {
					t.Skipf("%s is not installed", launcher.name)
				}
				line := append([]string{launcher.name}, launcher.line...)
				silent := launcher.name == "mpiexec.hydra" && dooms[how].text == "" // it may kill all ranks before they speak
				named := 0
				for range launches(1) {
					output := launchOther(t, append(line, rankLine(t, "doomed", how)...))
					if silent || strings.Contains(output, "EXIT CODE: 9") { // hydra has killed the others, and one of them may say of another that it was lost
						output = regexp.MustCompile(`(?m)^.*rank [023] failed: was lost: .*$`).ReplaceAllString(output, "")
					}
					d := dooms[how]
					byLabel := d.text != "" && regexp.MustCompile(`(?m)^\[(1|1,1)\].*`+d.text).MatchString(output)
					byOthers := regexp.MustCompile(d.hear).MatchString(output)
					if !d.isTold(t, output) || !byLabel && !byOthers && !silent {
						t.Errorf("%s", output)
					}
					if byLabel || byOthers {
						named++
					}
				}
				t.Logf("%d of %d named", named, launches(1))
			})
		}
	}
}

// launchOther runs a command line of a launcher and returns its output.
func launchOther(t *testing.T, line []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err == nil || ctx.Err() != nil {
		t.Errorf("%q: %v, want a failure, soon", line, err)
	}
	return innerLabel.ReplaceAllString(out.String(), "$1")
}

// innerLabel is a label of rank 1 inside of a line, of which a panic writes one part after the
// other.
var innerLabel = regexp.MustCompile(`(?m)([^\n])\[1(?:,1\]<stderr>:|\] )`)

// A panic of a goroutine rank is what the process prints, whatever the others do.
func TestPanicOfGoroutineRankIsPrinted(t *testing.T) {
	for _, how := range []string{"panic", "nil pointer"} {
		for range launches(5) {
			line := rankLine(t, "doomed-goroutines", how)
			out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != 2 || !dooms[how].isTold(t, string(out)) {
				t.Errorf("%v\n%s", err, out)
			}
		}
	}
}

// An operation that ends its goroutine is an error on its rank too, which then ends. So no job
// goes on for ever.
func TestOperationThatEndsItsGoroutineEndsTheJob(t *testing.T) {
	r := run(t, Options{Ranks: 4, Program: rankLine(t, "exits")})
	r.want(t, 1, "rank 1 on")
	if want := `rank 1, allreduce 2 f32 fold, step`; !strings.Contains(r.stderr.String(), want) {
		t.Errorf("%s\nlacks %q", r.stderr.String(), want)
	}
}

func init() {
	rankPrograms["exits"] = func([]string) {
		ctx := context.Background()
		comm, err := planner.Join(ctx, nil)
		check(err)
		fold := tasks.UserOp("fold", true, func(a, b float32) float32 {
			if comm.Rank() == 1 {
				runtime.Goexit()
			}
			return a + b
		})
		a := []float32{1, 2}
		err = planner.Allreduce(ctx, comm, a, a, fold)
		if err == nil {
			err = planner.Barrier(ctx, comm)
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("fine")
	}
}
