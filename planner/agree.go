package planner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// announcement is rank 0's message to all ranks of a job when they join.
type announcement struct {
	common
	Table     int    `json:"table"`      // bytes of the decision table behind this; 0: none
	From      string `json:"from"`       // of the table, such as a file
	Rules     int    `json:"rules"`      // bytes of rules behind the table; 0: none
	RulesFrom string `json:"rules_from"` // of the rules, such as a file
	Machine   []byte `json:"machine"`    // a machine's file; empty: none
	MachineOf string `json:"machine_of"` // of the machine, such as a file
	Measure   bool   `json:"measure"`    // the machine is to be measured, unless Machine is of the same ranks
	Check     bool   `json:"check"`      // Machine was kept by an earlier job, and may have changed
	Error     string `json:"error"`      // why rank 0 can't join
	jobName
	said
}

// jobName is a job's name and beginning, see [env.Door]. Both stay when its ranks change.
type jobName struct {
	Job   string    `json:"job"`
	Began time.Time `json:"began,omitzero"`
}

// next is the name in a further world of the job: another folder, of the same job. Of no job it is a new one's.
func (n jobName) next() jobName {
	if n.Job == "" {
		return jobName{drawName(), time.Now()}
	}
	job, _, _ := strings.Cut(n.Job, ".")
	return jobName{job + "." + drawName(), n.Began}
}

// said is what each rank tells all when they join.
type said struct {
	Life   *launcher.Life `json:"life,omitempty"` // its process; nil: nobody takes the places of others
	before jobName        // of the job's ranks before; zero: there were none
}

// agree makes rank 0's settings known to all ranks: its plans, and the size of its
// table. Other ranks' settings don't matter; they don't even read their tables.
func (o *settings) agree(ctx context.Context, job *join.Job, reg submodules.Registry, own said) (s announcement, data []byte, of []said, err error) {
	var mine []byte
	if job.Rank == 0 {
		s, data = o.announce(reg, job)
		s.said, s.jobName = own, own.before.next()
		mine, err = json.Marshal(s)
	} else if own != (said{}) {
		mine, err = json.Marshal(own)
	}
	if err != nil {
		return s, nil, nil, err
	}
	all, err := job.Exchange(ctx, mine)
	if err != nil {
		if lost, ok := errors.AsType[*join.PeerError](err); ok { // as any other call would tell it
			err = executor.LostRank(lost.Rank, lost.Err)
		}
		return s, nil, nil, fmt.Errorf("agree on plans: %w", err)
	}
	if err := json.Unmarshal(all[0], &s); err != nil {
		return s, nil, nil, fmt.Errorf("agree on plans: rank 0 said %.80q: %w", all[0], err)
	}
	of = make([]said, len(all))
	for r, text := range all {
		_ = json.Unmarshal(text, &of[r]) // of a rank without a lobby: nothing
	}
	switch {
	case s.Error != "":
		err = fmt.Errorf("rank 0: %s", s.Error)
	case s.Table < 0 || s.Table > table.MaxBytes:
		err = fmt.Errorf("rank 0 announces a table of %d bytes; allowed are %d", s.Table, table.MaxBytes)
	case s.Rules < 0 || s.Rules > rules.MaxBytes:
		err = fmt.Errorf("rank 0 announces rules of %d bytes; allowed are %d", s.Rules, rules.MaxBytes)
	}
	return s, data, of, err
}

// announce is rank 0's part of agree.
func (o *settings) announce(reg submodules.Registry, job *join.Job) (s announcement, data []byte) {
	t, err := o.tableOn(job, reg)
	c, unknown := o.common()
	if plan, bad := rules.ExpandWords(c.Plan); bad == nil { // else all ranks say what is wrong with it
		c.Plan = plan // programs of other ranks may know no such words
	}
	if s.common = c; err == nil {
		err = unknown
	}
	if err == nil && t != nil {
		s.From = t.Origin
		data, err = t.Decisions().Encode()
		s.Table = len(data)
	}
	if err == nil {
		data, err = o.announceRules(&s, data, reg)
	}
	if err == nil {
		err = o.announceMachine(&s, job)
	}
	if err != nil {
		s.Error = err.Error()
	}
	return s, data
}

// announceRules adds rank 0's rules, with their text at the end of data.
func (o *settings) announceRules(s *announcement, data []byte, reg submodules.Registry) ([]byte, error) {
	b, err := o.rules(reg)
	if err != nil || b == nil {
		return data, err
	}
	s.RulesFrom, s.Rules = b.Name, len(b.Text())
	return append(data, b.Text()...), nil
}

// announceMachine adds rank 0's machine.
func (o *settings) announceMachine(s *announcement, job *join.Job) error {
	from, err := o.machineSource()
	from = from.onJob(job, o.Congestion, s.Managed)
	if s.Measure, s.Check = from.measures, from.checks; err != nil || from.machine == nil {
		return err
	}
	s.MachineOf = from.machine.Origin
	s.Machine, err = from.machine.Format()
	return err
}

// machineSource returns the machine announced by rank 0, for a topology. A file to keep
// it in is rank 0's own matter.
func (s *announcement) machineSource(o *settings, job *join.Job) (from machineSource, err error) {
	if job.Rank == 0 {
		from, err = o.machineSource()
		from = from.onJob(job, o.Congestion, s.Managed)
	}
	from.machine, from.measures, from.checks = nil, s.Measure, s.Check
	if err == nil && len(s.Machine) > 0 {
		from.machine, err = parseMachine(s.MachineOf+" of rank 0", s.Machine)
	}
	if err == nil {
		err = from.settleOn(job.Topology, job.Secured() != "" && job.Topology.Nodes() > 1)
	}
	return from, err
}

// share lets all ranks have rank 0's table and rules. It is the first call of a communicator.
func (p *policy) share(ctx context.Context, b *base, s announcement, data []byte) error {
	if s.Table+s.Rules == 0 {
		return nil
	}
	if b.comm.Rank() != 0 {
		data = make([]byte, s.Table+s.Rules)
	}
	r := tasks.Request{Coll: tasks.Bcast, Count: int64(len(data)), Type: tasks.Uint8}
	if err := b.runInternal(ctx, r, tableCall, data); err != nil {
		return fmt.Errorf("share rank 0's decision table and rules: %w", err)
	}
	if s.Table > 0 {
		t, err := table.Parse(s.From+" of rank 0", bytes.TrimSpace(data[:s.Table]), b.registry)
		if err != nil {
			return err
		}
		p.table = &choose.Table{Table: t, Origin: s.From + " of rank 0"}
	}
	if s.Rules > 0 {
		rules, err := choose.ParseRules(s.RulesFrom+" of rank 0", string(data[s.Table:]), b.registry)
		if err != nil {
			return err
		}
		p.rules = rules
	}
	return nil
}
