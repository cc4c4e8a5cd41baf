package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/internal/cache"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
)

// keptFile returns rank 0's file for measurements of a job. Jobs with the same nodes, placement,
// congestion control, TLS and text in what share one. Empty: there is no place for it.
func keptFile(kind string, job *join.Job, congestion, what string) string {
	folder, err := cache.Folder(kind)
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

// keptMachine returns rank 0's file for the machine of a job.
func keptMachine(job *join.Job, congestion string) string {
	return keptFile(cache.Machines, job, congestion, fmt.Sprintf("machine %d of probe %d", machine.Version, probeVersion))
}

// keptTable returns rank 0's file for the table of a job. Other links have another one.
func (o *settings) keptTable(job *join.Job) string {
	return keptFile(cache.Tables, job, o.Congestion, fmt.Sprintf("table %d over %q", table.Version, o.Links))
}

// remembers reports whether a job looks for a kept table, and keeps the results of its trials: unless
// the options or the environment name a table or a machine.
func (o *settings) remembers() bool {
	s, err := o.machineSource()
	return err == nil && s.auto && o.Table == ""
}

// tableOn is table for a job: if nothing names one, it is the table kept for the same ranks. A kept
// table that can't be read is ignored.
func (o *settings) tableOn(job *join.Job, reg submodules.Registry) (*choose.Table, error) {
	if t, err := o.table(reg); err != nil || t != nil || !o.remembers() {
		return t, err
	}
	name := o.keptTable(job)
	t, err := choose.LoadTable(name, reg)
	if err != nil {
		return nil, nil
	}
	return &choose.Table{Table: t, Origin: name}, nil
}

// probeVersion changes with the way of measuring: no machine of an older way is read.
const probeVersion = 2

// onJob completes [MachineAuto]: ranks of several nodes use their kept machine. Managed ones measure one if none is
// kept, or the kept one can't be read.
func (s machineSource) onJob(job *join.Job, congestion string, managed bool) machineSource {
	if !s.auto || job.Topology.Nodes() < 2 {
		return s
	}
	file := keptMachine(job, congestion)
	if s.measures = managed; managed {
		s.keep = file
	}
	if data, err := files.Read(file, machine.MaxBytes); err == nil {
		m, err := parseMachine(file, data)
		if err == nil && m.Provenance.Ranks == ranksOf(job.Topology) && m.Check(job.Topology) == nil {
			s.machine, s.checks = m, true
		}
	}
	return s
}
