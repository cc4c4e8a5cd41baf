package planner

import (
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
)

// TableOff in place of a file's name means no decision table.
const TableOff = "off"

// rules reads the rules of the options or the environment; nil if there are none.
func (o *settings) rules(reg submodules.Registry) (*rules.Base, error) {
	switch {
	case o.Rules != "" && o.RulesData != nil:
		return nil, errors.New("Options: Rules and RulesData are both given; give one")
	case o.RulesData != nil:
		return choose.ParseRules("Options.RulesData", string(o.RulesData), reg)
	}
	name, origin := o.Rules, o.origin["Rules"]
	if name == "" {
		return nil, nil
	}
	b, err := choose.LoadRules(name, reg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	return b, nil
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
		if t, err = choose.LoadTable(name, reg); err != nil {
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
