package choose

import (
	"fmt"

	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// ParseForced reads plans in the grammar of [tasks.ParseForced]. A collective's plan may also have
// a word of another library, as bcast:ompi=6/65536: an algorithm's number or name, a segment
// size and a fan-out, or as bcast:mpich=binomial. tierflow info --foreign lists them. A program has
// these words if it imports package planner/rules/foreign; tierflow run replaces those of TIERFLOW_PLAN
// for any program. Unknown submodules and algorithms are errors; origin begins each.
func ParseForced(text, origin string, reg submodules.Registry) (f tasks.Forced, err error) {
	if text, err = rules.ExpandWords(text); err == nil {
		f, err = tasks.ParseForced(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	for _, item := range f {
		if err := reg.Check(item.Plan); err != nil {
			return nil, fmt.Errorf("%s: %w", origin, err)
		}
	}
	return f, nil
}

// LoadRules reads a file of rules, see [ParseRules].
func LoadRules(name string, reg submodules.Registry) (*rules.Base, error) {
	text, err := files.Read(name, rules.MaxBytes)
	if err != nil {
		return nil, err
	}
	return ParseRules(name, string(text), reg)
}

// ParseRules reads rules as [rules.Parse] does. Submodules and algorithms missing in reg are errors.
func ParseRules(name, text string, reg submodules.Registry) (*rules.Base, error) {
	b, err := rules.Parse(name, text)
	if err == nil {
		err = b.CheckPlans(reg.Check)
	}
	if err != nil {
		return nil, err
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
