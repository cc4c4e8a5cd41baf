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
)

// Snapshot is the record of a moment, kept by a rank for afterwards.
type Snapshot struct {
	Job    string
	Taken  time.Time
	Nodes  []string         // of all ranks, by rank
	States []flight.State   // of the rank, or of all as it saw them
	Found  *verdict.Finding `json:",omitempty"` // why the job stood still; nil: it has failed
}

// Keep writes a rank's snapshot to a folder. It makes the folder if need be. The file appears
// whole or not at all, in place of an older one; but the snapshot of a standstill
// stays when it fails in the end.
func (s *Snapshot) Keep(dir string, rank int) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("r%d.snap", rank))
	if old, err := readSnapshot(name); err == nil && old.Job == s.Job && old.Found != nil {
		return nil
	}
	if err := os.WriteFile(name+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func readSnapshot(name string) (s Snapshot, err error) {
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
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

// Merge returns the states of the job with the last of some snapshots, and its ranks'
// nodes. If it stood still before it failed its states of that moment count, the first ones,
// and its finding; else the states of ranks as told by themselves.
func Merge(all []Snapshot) (states []flight.State, nodes []string, found *verdict.Finding) {
	if len(all) == 0 {
		return nil, nil, nil
	}
	last := slices.MaxFunc(all, func(a, b Snapshot) int { return a.Taken.Compare(b.Taken) })
	all = slices.DeleteFunc(slices.Clone(all), func(s Snapshot) bool { return s.Job != last.Job })
	slices.SortStableFunc(all, func(a, b Snapshot) int { return a.Taken.Compare(b.Taken) })
	if all[0].Found != nil {
		return all[0].States, all[0].Nodes, all[0].Found
	}
	for _, s := range all {
		if s.Found == nil {
			states = append(states, s.States...)
		}
	}
	return states, last.Nodes, nil
}
