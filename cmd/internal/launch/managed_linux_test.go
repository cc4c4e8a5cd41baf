package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

func init() { rankPrograms["watched"] = watched }

// outside is what a process has outside of itself.
type outside struct {
	Masks   []string // lines of its status: signals that are ignored and caught, and processors of all threads
	Watches bool     // it waits for signals: the runtime catches them all anyway
	Bound   []string // names of its unix sockets, but for that at which ranks of its node meet
	Files   []string // open or mapped, and those of the door
}

// lookOutside looks at this process.
func lookOutside() (o outside) {
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	check(err)
	for _, task := range append(tasks, "/proc/self/status") {
		text, _ := os.ReadFile(task) // the thread may have ended
		for line := range strings.Lines(string(text)) {
			if name, _, _ := strings.Cut(line, ":"); name == "Cpus_allowed" || task == "/proc/self/status" && slices.Contains([]string{"SigIgn", "SigCgt"}, name) {
				o.Masks = append(o.Masks, line)
			}
		}
	}
	stacks := make([]byte, 1<<20)
	o.Watches = strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "os/signal.loop")
	fds, err := filepath.Glob("/proc/self/fd/*")
	check(err)
	bound, err := os.ReadFile("/proc/net/unix")
	check(err)
	for _, fd := range fds {
		target, _ := os.Readlink(fd)
		if inode, is := strings.CutPrefix(target, "socket:["); is {
			named := regexp.MustCompile(`(?m) ` + strings.TrimSuffix(inode, "]") + ` (.+)$`).FindStringSubmatch(string(bound))
			if named != nil && !strings.HasPrefix(named[1], "@tierflow-") {
				o.Bound = append(o.Bound, named[1])
			}
		} else if strings.HasPrefix(target, "/") {
			o.Files = append(o.Files, target)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	check(err)
	for _, mapped := range regexp.MustCompile(`(?m)^\S+ ...s \S+ \S+ \d+ +(/.*)$`).FindAllStringSubmatch(string(maps), -1) {
		o.Files = append(o.Files, mapped[1])
	}
	o.Files = slices.DeleteFunc(o.Files, func(name string) bool {
		return strings.HasPrefix(name, "/dev/null") || strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/memfd:tierflow")
	})
	jobs, err := door.Jobs(door.Folder(""))
	check(err)
	for _, j := range jobs {
		for _, rank := range j.Ranks {
			if rank.PID == os.Getpid() {
				o.Files = append(o.Files, "door of "+j.Name)
			}
		}
	}
	for _, list := range []*[]string{&o.Masks, &o.Bound, &o.Files} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return o
}

// watched joins, and tells what that has changed outside of it. It tells, too, by what a plan was chosen. Then rank 0 gets SIGQUIT.
func watched([]string) {
	ctx, before := context.Background(), lookOutside()
	comm, err := planner.Join(ctx, &planner.Options{Machine: planner.MachineAuto})
	check(err)
	why, err := raw.Explain(comm, tasks.Request{Coll: tasks.Bcast, Type: tasks.Float32, Count: 5 << 10})
	check(err)
	check(planner.Barrier(ctx, comm))
	text, err := json.Marshal(seen{before, lookOutside(), regexp.MustCompile("machine: .*").FindString(why)})
	check(err)
	fmt.Printf("seen %s\n", text)
	check(planner.Barrier(ctx, comm))
	if comm.Rank() == 0 {
		check(syscall.Kill(os.Getpid(), syscall.SIGQUIT))
		pause(forever)
	}
	_ = planner.Barrier(ctx, comm) // until rank 0 has ended
	_ = comm.Close()
}

// seen is what a rank has seen of itself.
type seen struct {
	Before, After outside
	Machine       string // the line of the plan's reasons; empty: nothing is known of it
}

// A program that joins touches nothing outside of itself, whoever starts it: no signal, no file, no name of a socket but that
// at which ranks of its node meet, no processor, and nothing is measured. tierflow run alone lets its ranks do all this. A
// machine that its ranks have kept is read by others, and left as it is.
func TestOnlyManagedRanksReachOutside(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"HOME", "TMPDIR", "XDG_CACHE_HOME"} {
		t.Setenv(name, filepath.Join(root, name))
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	files := func() (all []string) {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				info, err := entry.Info()
				check(err)
				all = append(all, fmt.Sprint(strings.TrimPrefix(name, root), " of ", info.ModTime()))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	byTorchrun := func() string {
		var ranks [][]string
		port := freePort(t)
		for r := range 4 {
			ranks = append(ranks, []string{
				fmt.Sprint("RANK=", r), "WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "TIERFLOW_SECRET=none", "TIERFLOW_NODE=" + "aabb"[r:r+1],
			})
		}
		out, _ := byHand(t, ranks, "watched")
		return out
	}
	byUs := func() string {
		r := run(t, Options{Hosts: "a:2,b:2", Launcher: launcherLocal, Program: rankLine(t, "watched")})
		return r.stdout.String() + r.stderr.String()
	}
	for _, job := range []struct {
		by      string
		start   func() string
		managed bool
		machine string // what is known of it
	}{
		{"torchrun", byTorchrun, false, "^$"},
		{"tierflow run", byUs, true, "^machine: ranks, measured by pairs"},
		{"torchrun again", byTorchrun, false, `^machine: (not known, .* is another one now|/.*\.json of rank 0, measured by pairs)`},
	} {
		kept := files()
		out := job.start()
		all := regexp.MustCompile(`(?m)seen (\{.*\})$`).FindAllStringSubmatch(out, -1)
		if len(all) != 4 {
			t.Fatalf("%s: %d ranks of 4 were seen:\n%s", job.by, len(all), out)
		}
		for _, text := range all {
			var is seen
			if err := json.Unmarshal([]byte(text[1]), &is); err != nil {
				t.Fatal(err)
			}
			was, now := is.Before, is.After
			touches := []bool{now.Watches, len(now.Bound) > 0, !slices.Equal(now.Files, was.Files)}
			moved := !slices.Equal(now.Masks, was.Masks) // a managed rank may just be on its way to another processor
			if was.Watches || slices.Contains(touches, !job.managed) || moved && !job.managed {
				t.Errorf("%s: signals, sockets and files are touched: %v, want %v: from %+v to %+v", job.by, touches, job.managed, was, now)
			}
			if !regexp.MustCompile(job.machine).MatchString(is.Machine) {
				t.Errorf("%s: %q, want %s", job.by, is.Machine, job.machine)
			}
		}
		if made := files(); slices.Equal(made, kept) == job.managed {
			t.Errorf("%s: files were %q, and are %q", job.by, kept, made)
		}
		if printed := strings.Contains(out, "rank 0: in no call after barrier"); printed != job.managed || !strings.Contains(out, "SIGQUIT: quit") {
			t.Errorf("%s: the rank's state is printed on SIGQUIT: %v, want %v\n%s", job.by, printed, job.managed, out)
		}
	}
}
