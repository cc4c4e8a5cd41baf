package kit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/printable"
	"github.com/tierflow/tierflow/planner"
)

// assumedMachine in place of a file's name stands for the assumed machine.
const assumedMachine = "assumed"

// SimulateText is the text of --simulate.
const SimulateText = "simulate the machine of this file, or assumed, in place of measuring: no ranks run"

// Simulated is a job without ranks: a topology on a described machine.
type Simulated struct {
	topology *levels.Topology
	text     string
	Machine  *machine.Machine
}

var _ Job = Simulated{}

// ReadSimulated makes p.Job the job for --topo and the machine file of --simulate, and returns it.
func (p *Problem) ReadSimulated(name string) (s Simulated, err error) {
	switch {
	case IsLaunched():
		return s, Usagef("--simulate: this process is a rank of a launched job; a simulation has no ranks")
	case p.IsGiven("link"):
		return s, Usagef("--link: the machine of --simulate says what the links are")
	}
	if s.topology, err = p.ReadTopology(); err != nil {
		return s, err
	}
	if s.Machine, err = ReadMachine("simulate", name); err != nil {
		return s, err
	}
	s.text = MachineText(name, s.Machine)
	p.Job = s
	return s, p.CheckTable()
}

// Topology returns the one of --topo.
func (s Simulated) Topology() *levels.Topology { return s.topology }

// Local is an error: there are no ranks.
func (s Simulated) Local(string) ([]*planner.Comm, error) {
	return nil, errors.New("a simulation has no ranks")
}

// Links names the simulated machine.
func (s Simulated) Links() string { return "simulated on " + s.text }

// String describes the job for headers.
func (s Simulated) String() string {
	return fmt.Sprintf("%v: %d ranks, simulated on %s", s.topology, s.topology.Size(), s.text)
}

// MachineName returns the machine's file and the origin of its numbers.
func (s Simulated) MachineName() string { return s.text }

// loggops begins a machine of LogGOPSim's parameters in place of a file's name.
const loggops = "loggops:"

// ReadMachine reads a machine file. Without a name, or with the name assumed, it returns the
// assumed machine; behind loggops: name holds the parameters of one.
func ReadMachine(flag, name string) (*machine.Machine, error) {
	if name == "" || name == assumedMachine {
		return machine.Assumed(), nil
	}
	var m *machine.Machine
	var err error
	if text, ok := strings.CutPrefix(name, loggops); ok {
		m, err = machine.ParseLogGOPS(text)
	} else {
		var data []byte
		if data, err = files.Read(name, machine.MaxBytes); err == nil {
			m, err = machine.Parse(name, data)
		}
	}
	if err != nil {
		return nil, Usagef("--%s: %w", flag, err)
	}
	return m, nil
}

// ReadMachine reads the file of --machine, changes the numbers of --set, and lets prices on that
// machine choose plans. Without either it returns the assumed machine, and plans are chosen as ever.
func (p *Problem) ReadMachine(name string, set ...string) (*machine.Machine, error) {
	m, err := ReadMachine("machine", name)
	if err != nil {
		return nil, err
	}
	if m, err = m.Set(set...); err != nil {
		return nil, Usagef("--set %w", err)
	}
	if name != "" || len(set) > 0 {
		p.machine, err = m.Format()
	}
	return m, err
}

// MachineText describes the machine of a simulation: the file's name, and the origin of its
// numbers.
func MachineText(name string, m *machine.Machine) string {
	if name == "" || name == assumedMachine || strings.HasPrefix(name, loggops) {
		name = "a machine"
	}
	how := m.Provenance.Method
	if how == "" {
		how = "of unknown origin"
	}
	return printable.Text(name + ", " + how)
}
