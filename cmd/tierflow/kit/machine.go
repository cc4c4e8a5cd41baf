package kit

import (
	"os"

	"github.com/tierflow/tierflow/costs/machine"
)

// ReadMachine reads a machine file. Without a name it is the machine that is assumed.
func ReadMachine(flag, name string) (*machine.Machine, error) {
	if name == "" {
		return machine.Assumed(), nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, Usagef("--%s: %w", flag, err)
	}
	m, err := machine.Parse(name, data)
	if err != nil {
		return nil, Usagef("--%s: %w", flag, err)
	}
	return m, nil
}

// MachineText says what machine a simulation is of: the file's name, and where its numbers
// come from.
func MachineText(name string, m *machine.Machine) string {
	if name == "" {
		name = "a machine"
	}
	how := m.Provenance.Method
	if how == "" {
		how = "of unknown origin"
	}
	return name + ", " + how
}
