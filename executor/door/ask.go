package door

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/printable"
	"github.com/tierflow/tierflow/levels/process"
)

// Job is a job with ranks on this machine.
type Job struct {
	Name  string
	Ranks []Info // those on this machine, ascending
}

// Has reports whether a rank has a file here.
func (j *Job) Has(rank int) bool {
	return slices.ContainsFunc(j.Ranks, func(i Info) bool { return i.Rank == rank })
}

// HasClosed reports whether a rank has left the job, as far as is known: it has no file here,
// and others of its node do.
func (j *Job) HasClosed(rank int) bool {
	nodes := j.Ranks[0].Nodes
	on := func(r int) string {
		if r < 0 || r >= len(nodes) {
			return ""
		}
		return nodes[r]
	}
	return !j.Has(rank) && on(rank) != "" && slices.ContainsFunc(j.Ranks, func(i Info) bool { return on(i.Rank) == on(rank) })
}

// IsDead reports whether the processes of all ranks here have ended for sure.
func (j *Job) IsDead() bool {
	return !slices.ContainsFunc(j.Ranks, func(i Info) bool {
		ended, _, known := i.process()
		return !known || !ended
	})
}

// Jobs lists the jobs of this user on this machine, by when they began. Of a job whose ranks have changed these are
// the ranks that began last. A missing folder has none.
func Jobs(root string) ([]Job, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Job
	for _, e := range entries {
		if ranks := readJob(filepath.Join(root, e.Name())); len(ranks) > 0 {
			name, _, _ := strings.Cut(e.Name(), ".")
			all = append(all, Job{printable.Text(name), ranks})
		}
	}
	slices.SortStableFunc(all, func(a, b Job) int { return a.Ranks[0].Began.Compare(b.Ranks[0].Began) })
	var newest []Job
	for i, j := range all {
		if !slices.ContainsFunc(all[i+1:], func(later Job) bool { return later.Name == j.Name }) {
			newest = append(newest, j)
		}
	}
	slices.SortStableFunc(newest, func(a, b Job) int { return a.Ranks[0].JobBegan().Compare(b.Ranks[0].JobBegan()) })
	return newest, nil
}

// readJob returns the ranks with files in a folder.
func readJob(dir string) (ranks []Info) {
	names, err := filepath.Glob(filepath.Join(escapeGlob(dir), "r*.json"))
	if err != nil {
		return nil
	}
	for _, name := range names {
		text, err := files.Read(name, maxInfo)
		i := Info{dir: dir}
		if err != nil || json.Unmarshal(text, &i) != nil || i.Job != filepath.Base(dir) || i.file("json") != name {
			continue // it has just been removed, or is no file of ours
		}
		printable.All(&i)
		ranks = append(ranks, i)
	}
	slices.SortFunc(ranks, func(a, b Info) int { return cmp.Compare(a.Rank, b.Rank) })
	return ranks
}

func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// Ask asks a rank. It fails when ctx ends, or after ten seconds.
func (i *Info) Ask(ctx context.Context, q Question) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", i.file("sock"))
	if err != nil {
		return a, fmt.Errorf("rank %d: %w", i.Rank, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })() // it may have ended
	if err = json.NewEncoder(c).Encode(q); err == nil {
		err = json.NewDecoder(c).Decode(&a)
	}
	printable.All(&a.States)
	if err != nil {
		return a, fmt.Errorf("rank %d does not answer: %w", i.Rank, cmp.Or(context.Cause(ctx), err))
	}
	return a, nil
}

// State returns the state of a rank as seen from outside: its process has ended or is
// stopped, and its last record. A rank that closed its door before its end has left. An unknown process is silent.
func (i *Info) State() flight.State {
	s := flight.State{Rank: i.Rank, Doing: flight.Silent}
	if data, err := files.Read(cmp.Or(i.Recording, i.file("rec")), flight.MaxBytes); err == nil {
		if rec, err := flight.ReadRecording("", data); err == nil && rec.Rank == i.Rank {
			s = rec.State()
			s.Doing = flight.Silent
		}
	}
	s.PID = i.PID
	switch ended, stopped, known := i.process(); {
	case !known:
	case ended:
		s.Doing = flight.Gone
		if _, err := os.Stat(i.file("json")); errors.Is(err, os.ErrNotExist) {
			s.Doing = flight.Left // it removed its files before it ended
		}
	case stopped:
		s.Doing = flight.Stopped
	}
	return s
}

// Neighbor returns [Info.State] of a rank of a job; ok is false if the rank has no file, or
// its process runs.
func Neighbor(dir string, rank int) (s flight.State, ok bool) {
	i := Info{dir: dir, Rank: rank}
	text, err := files.Read(i.file("json"), maxInfo)
	if err != nil || json.Unmarshal(text, &i) != nil || i.Rank != rank {
		return s, false
	}
	if ended, stopped, known := i.process(); known && (ended || stopped) {
		return i.State(), true
	}
	return s, false
}

// process reports whether the rank's process has ended, or is stopped; known is false if this can't be seen from here.
func (i *Info) process() (ended, stopped, known bool) {
	return process.Look(i.PID, i.Born, i.Space)
}

// Sweep removes what is left of jobs whose ranks have all ended without closing, and the
// folder if it is empty then.
func Sweep(root string) {
	entries, err := os.ReadDir(root)
	if err != nil || CheckFolder(root) != nil {
		return
	}
	for _, e := range entries {
		if IsName(e.Name()) { // the user may have other folders there
			sweepJob(filepath.Join(root, e.Name()))
		}
	}
	_ = os.Remove(root) // if it is empty
}

// IsName reports whether a job's folder may have the name: eight hexadecimal digits, and after a change of its ranks a dot
// and eight others.
func IsName(name string) bool {
	job, change, changed := strings.Cut(name, ".")
	return isDigits(job) && (!changed || isDigits(change))
}

func isDigits(word string) bool {
	return len(word) == 8 && strings.Trim(word, "0123456789abcdef") == ""
}

// sweepJob removes a job's folder if no rank in it lives.
func sweepJob(dir string) {
	ranks := readJob(dir)
	if j := (Job{Ranks: ranks}); !j.IsDead() {
		return
	}
	for i := range ranks {
		_ = ranks[i].remove() // somebody else may be at it too
	}
	if len(ranks) == 0 {
		removeOrphans(dir)
	}
	_ = os.Remove(dir) // unless a rank has just come
}

// orphanAge is how old a job's folder must be for files without a rank to be nobody's.
const orphanAge = time.Minute

// removeOrphans removes files of ranks without a name: they were killed on their way in or out.
func removeOrphans(dir string) {
	if info, err := os.Stat(dir); err != nil || time.Since(info.ModTime()) < orphanAge {
		return
	}
	for _, ending := range []string{"new", "sock", "rec*"} {
		files, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "r[0-9]*."+ending)) // the pattern is well formed
		for _, file := range files {
			_ = os.Remove(file)
		}
	}
}

// readLine reads one line of JSON.
func readLine(r io.Reader, v any) error {
	line, err := bufio.NewReader(io.LimitReader(r, maxQuestion)).ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}
