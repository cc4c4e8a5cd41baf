package planner

import (
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
	if o.Rules == "" {
		return nil, nil
	}
	text, err := o.read("Rules", o.Rules, rules.MaxBytes)
	if err != nil {
		return nil, err
	}
	b, err := choose.ParseRules(o.Rules, string(text), reg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.origin["Rules"], err)
	}
	return b, nil
}

// table reads the table of the options or the environment; nil if there is none.
func (o *settings) table(reg submodules.Registry) (*choose.Table, error) {
	name := o.Table
	if name == "" || name == TableOff {
		return nil, nil
	}
	data, err := o.read("Table", name, table.MaxBytes)
	if err != nil {
		return nil, err
	}
	t, err := table.Parse(name, data, reg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.origin["Table"], err)
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
