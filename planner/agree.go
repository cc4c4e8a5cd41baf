package planner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// said is what rank 0 tells all ranks of a job when they join.
type said struct {
	Plan       string `json:"plan"`
	PlanOrigin string `json:"plan_origin"`
	Table      int    `json:"table"`      // bytes of the decision table, which follows; 0: none
	From       string `json:"from"`       // where it is from
	Links      string `json:"links"`      // see [Options.Links]
	Machine    []byte `json:"machine"`    // a machine's file; empty: none
	MachineOf  string `json:"machine_of"` // where it is from
	Measure    bool   `json:"measure"`    // the machine is to be measured, unless Machine is of the same ranks
	Error      string `json:"error"`      // why rank 0 can't join
}

// agree makes what rank 0 was told to use known to all ranks: its plans, and how
// large its table is. What other ranks were told doesn't matter; they don't even
// read their tables.
func (o *Options) agree(ctx context.Context, job *join.Job, reg submodules.Registry) (s said, data []byte, err error) {
	var mine []byte
	if job.Rank == 0 {
		s, data = o.say(reg)
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
	case s.Table < 0 || s.Table > table.MaxBytes:
		err = fmt.Errorf("rank 0 announces a table of %d bytes; allowed are %d", s.Table, table.MaxBytes)
	}
	return s, data, err
}

// say is rank 0's part of agree.
func (o *Options) say(reg submodules.Registry) (s said, data []byte) {
	s.Plan, s.PlanOrigin = o.planText()
	s.Links = cmp.Or(o.Links, os.Getenv(LinksVariable))
	t, err := o.table(reg)
	if err == nil && t != nil {
		s.From = t.origin
		data, err = t.Decisions().Encode()
		s.Table = len(data)
	}
	if err == nil {
		err = o.sayMachine(&s)
	}
	if err != nil {
		s.Error = err.Error()
	}
	return s, data
}

// sayMachine adds rank 0's machine.
func (o *Options) sayMachine(s *said) error {
	w, err := o.wish()
	if s.Measure = w.measures; err != nil || w.machine == nil {
		return err
	}
	s.MachineOf = w.machine.origin
	s.Machine, err = w.machine.Format()
	return err
}

// heard returns what rank 0 says of the machine, for a topology. A file to keep it in is
// rank 0's own matter.
func (s *said) heard(o *Options, job *join.Job) (w wish, err error) {
	if job.Rank == 0 {
		w, err = o.wish()
	}
	w.machine, w.measures = nil, s.Measure
	if err == nil && len(s.Machine) > 0 {
		w.machine, err = parseMachine(s.MachineOf+" of rank 0", s.Machine)
	}
	if err == nil {
		err = w.on(job.Topology)
	}
	return w, err
}

// share sends rank 0's table to all ranks of a communicator that nothing else has
// been started on.
func (c *Comm) share(ctx context.Context, s said, data []byte) error {
	if s.Table == 0 {
		return nil
	}
	if c.Rank() != 0 {
		data = make([]byte, s.Table)
	}
	col, err := c.internal(tasks.Request{Coll: tasks.Bcast, Count: int64(len(data)), Type: tasks.Uint8}, tableCall, data)
	if err == nil {
		err = col.Run(ctx)
	}
	if err != nil {
		return fmt.Errorf("share rank 0's decision table: %w", err)
	}
	t, err := table.Parse(s.From+" of rank 0", bytes.TrimSpace(data), c.registry)
	if err != nil {
		return err
	}
	c.table = &loadedTable{t, s.From + " of rank 0"}
	c.memo = &memo{} // the decision for sending it was made without it
	return nil
}
