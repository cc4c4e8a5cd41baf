package planner

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/planner/choose"
)

// Words of [Options.Machine] in place of a file's name.
const (
	MachineAuto    = "auto" // the default
	MachineOff     = "off"
	MachineMeasure = "measure" // alone, or with a colon and a file's name
)

// machineSource is the machine's description by the options or the environment.
type machineSource struct {
	machine  *choose.Machine // nil: there is none yet
	measures bool            // it is to be measured, unless machine is of the same ranks
	keep     string          // file for the measured machine; empty: none
	auto     bool            // nothing was said: see [machineSource.onJob]
	checks   bool            // machine was kept by an earlier job, and may have changed
}

// machineSource reads the machine of the options or the environment.
func (o *settings) machineSource() (s machineSource, err error) {
	name, origin := o.Machine, o.origin["Machine"]
	switch name {
	case MachineOff:
		return s, nil
	case "", MachineAuto:
		s.auto = true
		return s, nil
	}
	file, measures := strings.CutPrefix(name, MachineMeasure+":")
	if s.measures = measures || name == MachineMeasure; s.measures {
		if !measures {
			return s, nil
		}
		s.keep = file
	}
	var data []byte
	if !measures {
		data, err = o.read("Machine", file, machine.MaxBytes)
	} else if data, err = files.Read(file, machine.MaxBytes); errors.Is(err, fs.ErrNotExist) {
		return s, nil // this job makes it
	} else if err != nil {
		err = fmt.Errorf("%s: %w", origin, err)
	}
	if err != nil {
		return s, fmt.Errorf("%w; allowed are a machine's file, %s, %s, %s:FILE and %s", err, MachineAuto, MachineMeasure, MachineMeasure, MachineOff)
	}
	if s.machine, err = parseMachine(file, data); err != nil {
		return s, fmt.Errorf("%s: %w", origin, err)
	}
	return s, nil
}

// settleOn completes the source for a topology: the ranks measure again if others measured the
// machine. It is an error if the machine lacks one of t's links.
//
// sealed means TLS between nodes. A machine of another setting is measured again
// too. A machine that is only read gets the cost of sealing added if its file has it; else Explain
// warns.
func (s *machineSource) settleOn(t *levels.Topology, sealed bool) error {
	if s.measures && s.machine != nil && (s.machine.Provenance.Ranks != ranksOf(t) || s.machine.TLS != sealed) {
		s.machine = nil
	}
	s.measures, s.checks = s.measures && s.machine == nil, s.checks && s.machine != nil
	if m := s.machine; m != nil && m.Machine != nil && m.TLS != sealed {
		m.Why = "its links were measured with TLS, and here is none: prices are too high"
		if sealed {
			known := false
			m.Machine, known = m.Sealed(betweenNodes(t))
			m.Why = "its links were measured without TLS: what sealing takes is added"
			if !known {
				m.Why = "its links were measured without TLS, and it has no seal_byte_ns and open_byte_ns: prices are too low"
			}
		}
	}
	return s.machine.Check(t)
}

// betweenNodes returns a test for links between nodes.
func betweenNodes(t *levels.Topology) func(machine.Symbol) bool {
	return func(s machine.Symbol) bool {
		for k := range t.Depth() {
			if machine.Symbol(t.Level(k).Symbol) == s {
				return t.Domains(k) < t.Nodes() // several nodes are in one domain
			}
		}
		return false
	}
}

// ranksOf names the ranks of a machine's measurement: processes find other numbers than goroutines.
func ranksOf(t *levels.Topology) string {
	if t.IsOneProcess() {
		return "goroutines " + t.String()
	}
	return "processes " + t.String()
}

func parseMachine(origin string, data []byte) (*choose.Machine, error) {
	if len(data) > machine.MaxBytes {
		return nil, fmt.Errorf("%s: a machine of %d bytes; allowed are %d", origin, len(data), machine.MaxBytes)
	}
	m, err := machine.Parse(origin, data)
	if err != nil {
		return nil, err
	}
	return &choose.Machine{Machine: m, Origin: origin}, nil
}
