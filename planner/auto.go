package planner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/internal/cache"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
)

// keptMachine returns rank 0's file for the machine of a job. Jobs with the same nodes, placement, congestion control
// and TLS share one. Empty: there is no place for it.
func keptMachine(job *join.Job, congestion string) string {
	folder, err := cache.Folder(cache.Machines)
	if err != nil {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "machine %d of probe %d, congestion %q, tls %v, %v\n", machine.Version, probeVersion, congestion, job.Secured() != "", ranksOf(job.Topology))
	for r := range levels.Rank(job.Topology.Size()) {
		for k := range job.Topology.Depth() {
			fmt.Fprintf(h, "%q ", job.Topology.DomainName(r, k))
		}
	}
	return filepath.Join(folder, hex.EncodeToString(h.Sum(nil)[:12])+".json")
}

// keptTable returns rank 0's file for the table of a job: KIND_i=4,s=2_LAYOUT.json. Jobs on hosts of the same kinds, with
// the same congestion control, TLS and name of links, have the same KIND, wherever they run. Empty: there is no place for it.
func (o *settings) keptTable(job *join.Job) string {
	folder, err := cache.Folder(cache.Tables)
	if err != nil {
		return ""
	}
	kind := sha256.New()
	fmt.Fprintf(kind, "table %d over %q, congestion %q, tls %v, %q", table.Version, o.Links, o.Congestion, job.Secured() != "", job.Kinds())
	return filepath.Join(folder, fmt.Sprintf("%x_%v_%s.json", kind.Sum(nil)[:12], table.SizesOf(job.Topology), table.LayoutOf(job.Topology)))
}

// tablesBeside lists the kept tables of other sizes and layouts of the kind of a job's own one, those of the nearest sizes first.
func tablesBeside(own string, sizes table.Sizes) (names []string) {
	kind, _, _ := strings.Cut(filepath.Base(own), "_")
	all, err := filepath.Glob(filepath.Join(filepath.Dir(own), kind+"_*.json"))
	if err != nil {
		return nil
	}
	away := map[string]float64{}
	for _, name := range all {
		_, rest, _ := strings.Cut(filepath.Base(name), "_")
		text, _, _ := strings.Cut(rest, "_")
		if of, err := table.ParseSizes(text); err == nil && name != own {
			if times, near := of.Times(sizes); near {
				away[name] = times
				names = append(names, name)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(away[a], away[b]) })
	return names[:min(len(names), mostBeside)]
}

// mostBeside bounds the tables that a job's own one is joined with: all ranks get them.
const mostBeside = 4

// remembers reports whether a job looks for a kept table, and keeps the results of its trials: unless
// the options or the environment name a table or a machine.
func (o *settings) remembers() bool {
	s, err := o.machineSource()
	return err == nil && s.auto && o.Table == ""
}

// tableOn is table for a job: if nothing names one, it is the table kept for ranks on such hosts, with what the tables of
// other sizes know. A kept table that can't be read is ignored.
func (o *settings) tableOn(job *join.Job, reg submodules.Registry) (*choose.Table, error) {
	if t, err := o.table(reg); err != nil || t != nil || !o.remembers() {
		return t, err
	}
	own := o.keptTable(job)
	if own == "" {
		return nil, nil
	}
	var found *choose.Table
	for _, name := range append([]string{own}, tablesBeside(own, table.SizesOf(job.Topology))...) {
		t, err := choose.LoadTable(name, reg)
		switch {
		case err != nil:
		case found == nil:
			found = &choose.Table{Table: t, Origin: name}
		case found.Join(t):
			found.Origin += " and " + filepath.Base(name)
		}
	}
	return found, nil
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
