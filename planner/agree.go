package planner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// TableVariable is the environment variable that names a file with a decision
// table, see [Options.Table].
const TableVariable = "TIERFLOW_TABLE"

// loadedTable is a table and where it is from.
type loadedTable struct {
	*Table
	origin string
}

// LoadTable reads a file with a decision table, as [ParseTable] does.
func LoadTable(name string, reg submodules.Registry) (*Table, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readTable(name, f, reg)
}

// table reads the table of the options or the environment; nil if there is none.
func (o *Options) table(reg submodules.Registry) (*loadedTable, error) {
	name, origin := o.Table, "Options.Table"
	switch {
	case o.Table != "" && o.TableData != nil:
		return nil, errors.New("Options: Table and TableData are both given; give one")
	case o.TableData != nil:
		t, err := ParseTable("Options.TableData", o.TableData, reg)
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

// said is what rank 0 tells all ranks of a job when they join.
type said struct {
	Plan       string `json:"plan"`
	PlanOrigin string `json:"plan_origin"`
	Table      int    `json:"table"` // bytes of the decision table, which follows; 0: none
	From       string `json:"from"`  // where it is from
	Error      string `json:"error"` // why rank 0 can't join
}

// agree makes what rank 0 was told to use known to all ranks: its plans, and how
// large its table is. What other ranks were told doesn't matter; they don't even
// read their tables.
func (o *Options) agree(ctx context.Context, job *join.Job, reg submodules.Registry) (s said, table []byte, err error) {
	var mine []byte
	if job.Rank == 0 {
		s, table = o.say(reg)
		if mine, err = json.Marshal(s); err != nil {
			return s, nil, err
		}
	}
	all, err := job.Exchange(ctx, mine)
	if err != nil {
		return s, nil, fmt.Errorf("agree on plans: %w", err)
	}
	if err := json.Unmarshal(all[0], &s); err != nil {
		return s, nil, fmt.Errorf("agree on plans: rank 0 said %.80q: %w", all[0], err)
	}
	switch {
	case s.Error != "":
		err = fmt.Errorf("rank 0: %s", s.Error)
	case s.Table < 0 || s.Table > maxTable:
		err = fmt.Errorf("rank 0 announces a table of %d bytes; allowed are %d", s.Table, maxTable)
	}
	return s, table, err
}

// say is rank 0's part of agree.
func (o *Options) say(reg submodules.Registry) (s said, table []byte) {
	s.Plan, s.PlanOrigin = o.planText()
	t, err := o.table(reg)
	if err == nil && t != nil {
		s.From = t.origin
		table, err = t.decisions().Encode()
		s.Table = len(table)
	}
	if err != nil {
		s.Error = err.Error()
	}
	return s, table
}

// share sends rank 0's table to all ranks of a communicator that nothing else has
// been started on.
func (c *Comm) share(ctx context.Context, s said, table []byte) error {
	if s.Table == 0 {
		return nil
	}
	if c.Rank() != 0 {
		table = make([]byte, s.Table)
	}
	col, err := c.internal(tasks.Request{Coll: tasks.Bcast, Count: int64(len(table)), Type: tasks.Uint8}, tableCall, table)
	if err == nil {
		err = col.Run(ctx)
	}
	if err != nil {
		return fmt.Errorf("share rank 0's decision table: %w", err)
	}
	t, err := ParseTable(s.From+" of rank 0", bytes.TrimSpace(table), c.registry)
	if err != nil {
		return err
	}
	c.table = &loadedTable{t, s.From + " of rank 0"}
	c.memo = &memo{} // the decision for sending it was made without it
	return nil
}
