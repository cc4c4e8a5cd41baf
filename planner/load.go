package planner

import (
	"errors"
	"fmt"
	"os"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
)

// TableVariable is the environment variable that names a file with a decision
// table, see [Options.Table].
const TableVariable = "TIERFLOW_TABLE"

// loadedTable is a table and where it is from.
type loadedTable struct {
	*table.Table
	origin string
}

// LoadTable reads a file with a decision table, as [table.Parse] does.
func LoadTable(name string, reg submodules.Registry) (*table.Table, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return table.Read(name, f, reg)
}

// table reads the table of the options or the environment; nil if there is none.
func (o *Options) table(reg submodules.Registry) (*loadedTable, error) {
	t, err := o.anyTable(reg)
	if err != nil || t == nil {
		return nil, err
	}
	if on := t.Provenance.Simulated; o.MeasuredTable && on != "" {
		return nil, fmt.Errorf("%s: its times were simulated on %s; Options.MeasuredTable allows measured ones only", t.origin, on)
	}
	return t, nil
}

// anyTable is table without what the options demand of it.
func (o *Options) anyTable(reg submodules.Registry) (*loadedTable, error) {
	name, origin := o.Table, "Options.Table"
	switch {
	case o.Table != "" && o.TableData != nil:
		return nil, errors.New("Options: Table and TableData are both given; give one")
	case o.TableData != nil:
		t, err := table.Parse("Options.TableData", o.TableData, reg)
		if err != nil {
			return nil, err
		}
		return &loadedTable{t, "Options.TableData"}, nil
	case name == "":
		name, origin = os.Getenv(TableVariable), TableVariable
	}
	if name == "" {
		return nil, nil
	}
	t, err := LoadTable(name, reg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	return &loadedTable{t, name}, nil
}
