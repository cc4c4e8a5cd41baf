package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels/join/env"
)

// answerTime bounds the wait for a rank here, short of a processor maybe; farTime bounds it for a
// rank asking others elsewhere.
const (
	answerTime = 3 * time.Second
	farTime    = 4 * time.Second
)

// findJobs returns the jobs on this machine; with names only those beginning with one of them.
func findJobs(names []string) ([]door.Job, error) {
	setting := os.Getenv(env.Door)
	if setting == "off" {
		return nil, kit.Usagef("%s=off: no rank can be asked; unset it here, and where the job is started", env.Door)
	}
	root := door.Folder(setting)
	if setting == "" { // of a folder that the user names the user knows whose it is
		if err := door.CheckFolder(root); err != nil {
			return nil, fmt.Errorf("%w, so ranks of this user can't be asked; remove it, or set %s to another folder, here and for jobs", err, env.Door)
		}
	}
	all, err := door.Jobs(root)
	if err != nil || len(names) == 0 {
		return all, err
	}
	var picked []door.Job
	for _, name := range names {
		named := slices.DeleteFunc(slices.Clone(all), func(j door.Job) bool { return !strings.HasPrefix(j.Name, name) })
		if len(named) == 0 {
			return nil, kit.Usagef("job %q: %s", name, knownJobs(all, root))
		}
		picked = append(picked, named...)
	}
	return picked, nil
}

// noJob is said where there is none.
const noJob = "no job of this user runs here that can be asked; those of other launchers than tierflow run need " +
	env.Managed + "=1"

func knownJobs(all []door.Job, root string) string {
	if len(all) == 0 {
		return fmt.Sprintf("%s (looked in %s)", noJob, root)
	}
	names := kit.Words(all, func(j door.Job) string {
		first := &j.Ranks[0]
		return fmt.Sprintf("%s (%s, %d rank%s)", j.Name, first.Program, first.Ranks, kit.Plural(first.Ranks))
	})
	return "jobs of this user here are " + strings.Join(names, ", ")
}

// oneJob returns the named job, or the only one. Jobs without a living rank here count only if
// there is no other one.
func oneJob(names []string) (door.Job, error) {
	jobs, err := findJobs(names)
	if err != nil {
		return door.Job{}, err
	}
	if len(jobs) > 1 {
		if living := slices.DeleteFunc(slices.Clone(jobs), func(j door.Job) bool { return j.IsDead() }); len(living) > 0 {
			jobs = living
		}
	}
	switch known := knownJobs(jobs, door.Folder(os.Getenv(env.Door))); len(jobs) {
	case 0:
		return door.Job{}, kit.Usagef("%s", known)
	case 1:
		return jobs[0], nil
	default:
		return door.Job{}, kit.Usagef("%d jobs run, name one: %s", len(jobs), known)
	}
}

// jobOf returns the job of a process.
func jobOf(pid int) (door.Job, error) {
	all, err := findJobs(nil)
	if err != nil {
		return door.Job{}, err
	}
	for _, j := range all {
		if slices.ContainsFunc(j.Ranks, func(i door.Info) bool { return i.PID == pid }) {
			return j, nil
		}
	}
	return door.Job{}, kit.Usagef("--pid %d: no rank of this user here is that process", pid)
}

// view is a job as it was seen at one moment.
type view struct {
	Job     string         `json:"job"`
	Program string         `json:"program"`
	Began   time.Time      `json:"began"`
	Size    int            `json:"size"`
	Nodes   []string       `json:"nodes"`
	States  []flight.State `json:"states"` // of all ranks, by rank
	asked   []bool         // by rank: it or another one was asked, or its recording read
}

// look asks all ranks of a job: those on this machine each by itself, at the same time, and the
// others through the first of these to answer.
func look(ctx context.Context, j door.Job) (*view, error) {
	first := j.Ranks[0]
	v := &view{Job: j.Name, Program: first.Program, Began: first.JobBegan(), Size: first.Ranks, Nodes: first.Nodes, States: make([]flight.State, first.Ranks), asked: make([]bool, first.Ranks)}
	for r := range v.States {
		v.States[r] = flight.State{Rank: r, Doing: flight.Silent}
		if j.HasClosed(r) {
			v.States[r].Doing = flight.Left
		}
		v.asked[r] = j.Has(r)
	}
	answers := make([]bool, len(j.Ranks))
	var asked sync.WaitGroup
	for k := range j.Ranks {
		asked.Go(func() {
			i := &j.Ranks[k]
			if i.Rank >= 0 && i.Rank < v.Size {
				v.States[i.Rank], answers[k] = ask(ctx, i)
			}
		})
	}
	asked.Wait()
	if len(j.Ranks) < v.Size {
		v.askFar(ctx, j, answers)
	}
	return v, ctx.Err()
}

// ask asks one rank, or looks at it from outside.
func ask(ctx context.Context, i *door.Info) (s flight.State, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if s = i.State(); s.Doing != flight.Silent {
		return s, false // it can't answer
	}
	a, err := i.Ask(ctx, door.Question{})
	if err == nil && len(a.States) == 1 && a.States[0].Rank == i.Rank {
		if s = a.States[0]; s.Doing == flight.Outside && s.Last == "" && s.Since == 0 {
			s.Since = time.Since(i.Began) // no call has ended since it entered
		}
		return s, true
	}
	return i.State(), false
}

// askFar asks ranks on other machines through an answering one here.
func (v *view) askFar(ctx context.Context, j door.Job, answers []bool) {
	var far []int
	for r := range v.Size {
		if v.States[r].Doing != flight.Left && !j.Has(r) {
			far = append(far, r)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, farTime)
	defer cancel()
	for k := range j.Ranks {
		if !answers[k] {
			continue
		}
		a, err := j.Ranks[k].Ask(ctx, door.Question{Ranks: far})
		if err != nil {
			continue
		}
		for _, r := range far {
			v.asked[r] = true
		}
		for _, s := range a.States {
			if slices.Contains(far, s.Rank) {
				v.States[s.Rank] = s
			}
		}
		return
	}
}

// nodeOf returns the name of a rank's node; empty: unknown.
func nodeOf(nodes []string, rank int) string {
	if rank < len(nodes) {
		return nodes[rank]
	}
	return ""
}

// knownStates returns the states of ranks that were asked, by themselves or through another one.
func (v *view) knownStates() (all []flight.State) {
	for r, s := range v.States {
		if v.asked[r] {
			all = append(all, s)
		}
	}
	return all
}

// readable reports whether anything is known of any rank.
func (v *view) readable() bool {
	return slices.ContainsFunc(v.States, func(s flight.State) bool { return s.Doing != flight.Silent })
}

var errNothing = errors.New("no rank answers, and there is no recording of one")

// pidText is a process's number; a minus if it is unknown.
func pidText(pid int) string {
	if pid == 0 {
		return "-"
	}
	return strconv.Itoa(pid)
}
