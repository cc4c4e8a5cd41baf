package planner

import (
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
)

// TableOff in place of a file's name means no decision table.
const TableOff = "off"

// LoadRules reads a file of rules, as [rules.Parse] does. Submodules and algorithms missing in reg
// are errors.
func LoadRules(name string, reg submodules.Registry) (*rules.Base, error) {
	text, err := files.Read(name, rules.MaxBytes)
	if err != nil {
		return nil, err
	}
	return parseRules(name, string(text), reg)
}

// parseRules reads rules, and checks their plans with reg.
func parseRules(name, text string, reg submodules.Registry) (*rules.Base, error) {
	b, err := rules.Parse(name, text)
	if err == nil {
		err = b.CheckPlans(reg.Check)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// rules reads the rules of the options or the environment; nil if there are none.
func (o *settings) rules(reg submodules.Registry) (*rules.Base, error) {
	switch {
	case o.Rules != "" && o.RulesData != nil:
		return nil, errors.New("Options: Rules and RulesData are both given; give one")
	case o.RulesData != nil:
		return parseRules("Options.RulesData", string(o.RulesData), reg)
	}
	name, origin := o.Rules, o.origin["Rules"]
	if name == "" {
		return nil, nil
	}
	b, err := LoadRules(name, reg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	return b, nil
}

// LoadTable reads a file with a decision table, as [table.Parse] does.
func LoadTable(name string, reg submodules.Registry) (*table.Table, error) {
	data, err := files.Read(name, table.MaxBytes)
	if err != nil {
		return nil, err
	}
	return table.Parse(name, data, reg)
}

// table reads the table of the options or the environment; nil if there is none.
func (o *settings) table(reg submodules.Registry) (*choose.Table, error) {
	name, origin := o.Table, o.origin["Table"]
	var t *table.Table
	var err error
	switch {
	case o.Table != "" && o.TableData != nil:
		return nil, errors.New("Options: Table and TableData are both given; give one")
	case o.TableData != nil:
		name = "Options.TableData"
		t, err = table.Parse(name, o.TableData, reg)
	case name == "" || name == TableOff:
		return nil, nil
	default:
		if t, err = LoadTable(name, reg); err != nil {
			err = fmt.Errorf("%s: %w", origin, err)
		}
	}
	if err != nil {
		return nil, err
	}
	if on := t.Provenance.Simulated; o.MeasuredTable && on != "" {
		return nil, fmt.Errorf("%s: its times were simulated on %s; Options.MeasuredTable allows measured ones only", name, on)
	}
	return &choose.Table{Table: t, Origin: name}, nil
}

// Words of [Options.Effort].
const (
	EffortEstimate = "estimate" // the default
	EffortMeasure  = "measure"
)
