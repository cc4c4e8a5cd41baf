package planner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
)

// maxKept is how many files of a kind are kept: whoever writes one more removes the oldest.
const maxKept = 64

// What jobs keep in the user's cache folder, by kind.
const (
	KeptMachines = "machines"
	KeptTables   = "tables"
)

// KeptFolder returns the folder where jobs keep what they have measured, [KeptMachines] or
// [KeptTables]. Without a home it is an error.
func KeptFolder(kind string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "tierflow", kind), nil
}

// keptFile returns the file in which rank 0 keeps something of a job: one for the same nodes,
// placement, congestion control and TLS. what is more that must be the same. Empty: there is no
// place for it.
func keptFile(kind string, job *join.Job, congestion, what string) string {
	folder, err := KeptFolder(kind)
	if err != nil {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s, congestion %q, tls %v, %v\n", what, congestion, job.Secured() != "", ranksOf(job.Topology))
	for r := range levels.Rank(job.Topology.Size()) {
		for k := range job.Topology.Depth() {
			fmt.Fprintf(h, "%q ", job.Topology.DomainName(r, k))
		}
	}
	return filepath.Join(folder, hex.EncodeToString(h.Sum(nil)[:12])+".json")
}

// keptMachine returns the file in which rank 0 keeps the machine of a job.
func keptMachine(job *join.Job, congestion string) string {
	return keptFile(KeptMachines, job, congestion, fmt.Sprintf("machine %d of probe %d", machine.Version, probeVersion))
}

// keptTable returns the file where rank 0 looks for a table. Of other links it is another one.
func (o *Options) keptTable(job *join.Job) string {
	return keptFile(KeptTables, job, o.congestion(), fmt.Sprintf("table %d over %q", table.Version, cmp.Or(o.Links, os.Getenv(LinksVariable))))
}

// remembers reports whether a job without a table looks for one that was kept, and keeps what it
// tries: unless it was told what to decide by.
func (o *Options) remembers() bool {
	s, err := o.machineSource()
	return err == nil && s.auto && o.Table == "" && o.TableData == nil && os.Getenv(TableVariable) == ""
}

// tableOn is table for a job: what is kept of its ranks if nothing else is said. One that can't
// be read is as if there were none.
func (o *Options) tableOn(job *join.Job, reg submodules.Registry) (*choose.Table, error) {
	if t, err := o.table(reg); err != nil || t != nil || !o.remembers() {
		return t, err
	}
	name := o.keptTable(job)
	t, err := LoadTable(name, reg)
	if err != nil {
		return nil, nil
	}
	return &choose.Table{Table: t, Origin: name}, nil
}

// probeVersion changes with what is measured, so that no machine of an older way is read.
const probeVersion = 2

// onJob completes what is to be done if nothing was said: ranks of several nodes use the machine
// that is kept of them, or measure one. What is kept and can't be read is measured again.
func (s machineSource) onJob(job *join.Job, congestion string) machineSource {
	if !s.auto || job.Topology.Nodes() < 2 {
		return s
	}
	s.measures, s.keep = true, keptMachine(job, congestion)
	if data, err := os.ReadFile(s.keep); err == nil {
		m, err := parseMachine(s.keep, data)
		if err == nil && m.Provenance.Ranks == ranksOf(job.Topology) && m.Check(job.Topology) == nil {
			s.machine, s.checks = m, true
		}
	}
	return s
}

// keepFile writes a file so that others see all of it or nothing, and only this user reads it.
// In a folder of [KeptFolder], which it makes, the oldest files go if there are too many.
func keepFile(name string, data []byte) (err error) {
	folder := filepath.Dir(name)
	for _, kind := range []string{KeptMachines, KeptTables} {
		if own, err := KeptFolder(kind); err == nil && folder == own {
			if err = os.MkdirAll(folder, 0o700); err != nil {
				return err
			}
			defer dropOldest(folder)
		}
	}
	f, err := os.CreateTemp(folder, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// dropOldest removes the oldest files of a folder. Another job may do the same: what is gone
// already is no error.
func dropOldest(folder string) {
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(names) <= maxKept {
		return
	}
	age := func(name string) int64 {
		info, err := os.Stat(name)
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(names, func(a, b string) int { return int(max(-1, min(1, age(a)-age(b)))) })
	for _, name := range names[:len(names)-maxKept] {
		_ = os.Remove(name)
	}
}
