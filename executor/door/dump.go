package door

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/printable"
)

// Snapshot is the record of a moment, kept for afterwards by a rank, or by the job's launcher.
type Snapshot struct {
	Job    string    `json:",omitempty"` // the launcher doesn't know it
	Began  time.Time `json:",omitzero"`  // the launcher began the job then; zero: it is a rank's
	Taken  time.Time
	Nodes  []string         `json:",omitempty"` // of all ranks, by rank
	States []flight.State   `json:",omitempty"` // of the rank, or of all as it saw them; the launcher has none
	Found  *verdict.Finding `json:",omitempty"` // why the job stood still, the launcher's: why it ended; nil: it has failed
}

// Keep writes a rank's snapshot to a folder. It makes the folder if need be. The file appears
// whole or not at all, in place of an older one; but the snapshot of a standstill
// stays when it fails in the end.
func (s *Snapshot) Keep(dir string, rank int) error {
	name := filepath.Join(dir, fmt.Sprintf("r%d.snap", rank))
	if old, err := readSnapshot(name); err == nil && old.Job == s.Job && old.Found != nil {
		return nil
	}
	return s.write(name)
}

// launcherFile has the launcher's snapshot.
const launcherFile = "run.snap"

// KeepEnding writes a launcher's finding of why a job has ended beside the snapshots of its ranks.
func KeepEnding(dir string, began time.Time, found *verdict.Finding) error {
	s := Snapshot{Began: began, Taken: time.Now(), Found: found}
	return s.write(filepath.Join(dir, launcherFile))
}

// DropEnding removes what [KeepEnding] wrote for an earlier job.
func DropEnding(dir string) error {
	if err := os.Remove(filepath.Join(dir, launcherFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Snapshot) write(name string) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o755)
	}
	if err != nil {
		return err
	}
	return files.Write(name, text, 0o600)
}

// maxSnapshot bounds a snapshot, bytes: one has the states of all ranks.
const maxSnapshot = 64 << 20

func readSnapshot(name string) (s Snapshot, err error) {
	text, err := files.Read(name, maxSnapshot)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	printable.All(&s)
	return s, err
}

// ReadSnapshots reads the snapshots of the ranks of a job in a folder. It fails if there is
// nothing.
func ReadSnapshots(dir string) (all []Snapshot, err error) {
	names, err := filepath.Glob(filepath.Join(escapeGlob(dir), "r*.snap"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		s, err := readSnapshot(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		all = append(all, s)
	}
	switch {
	case len(all) > 0:
		return all, nil
	case len(errs) == 0:
		return nil, fmt.Errorf("%s has no file r0.snap or of another rank", dir)
	}
	return nil, errors.Join(errs...)
}

// Diagnose returns the states of the job with the last of some snapshots, and why it stood still or
// failed, the cause of the rest first. Calls that stood still for less than least don't count.
func Diagnose(all []Snapshot, least time.Duration) ([]flight.State, []verdict.Finding) {
	states, nodes, known := merge(all)
	found := verdict.Diagnose(states, verdict.Options{Least: least, Nodes: nodes})
	if known == nil {
		return states, found
	}
	found = slices.DeleteFunc(found, func(f verdict.Finding) bool { return f.Same(known) })
	return states, append([]verdict.Finding{*known}, found...)
}

// merge returns the states of the job with the last of some snapshots, and its ranks' nodes. If it
// stood still before it failed its states of that moment count, the first ones, and its finding; else
// the states of ranks as told by themselves, their failures as long ago as they are by the last one,
// and the launcher's finding: ranks that it has ended because of another one are lost to the rest, too.
func merge(all []Snapshot) (states []flight.State, nodes []string, found *verdict.Finding) {
	launcher, all := splitLauncher(all)
	if launcher != nil {
		found = launcher.Found
	}
	if len(all) == 0 {
		return nil, nil, found
	}
	last := all[len(all)-1]
	all = slices.DeleteFunc(all, func(s Snapshot) bool { return s.Job != last.Job })
	if all[0].Found != nil {
		return all[0].States, all[0].Nodes, all[0].Found
	}
	for _, s := range all {
		if s.Found != nil {
			continue
		}
		for _, state := range s.States {
			if state.Failed != nil {
				f := *state.Failed
				f.Ago += last.Taken.Sub(s.Taken)
				state.Failed = &f
			}
			states = append(states, state)
		}
	}
	return states, last.Nodes, found
}

// splitLauncher returns the launcher's snapshot and those of ranks, the last one at the end. If they
// are of different jobs, it returns the later one alone.
func splitLauncher(all []Snapshot) (launcher *Snapshot, ranks []Snapshot) {
	for _, s := range all {
		if s.Began.IsZero() {
			ranks = append(ranks, s)
		} else {
			launcher = &s
		}
	}
	slices.SortStableFunc(ranks, func(a, b Snapshot) int { return a.Taken.Compare(b.Taken) })
	if launcher == nil || len(ranks) == 0 {
		return launcher, ranks
	}
	switch last := ranks[len(ranks)-1].Taken; {
	case last.Before(launcher.Began):
		return launcher, nil
	case last.After(launcher.Taken):
		return nil, ranks
	}
	return launcher, ranks
}
