package simulate

import (
	"bytes"
	"fmt"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// report is the JSON of one plan.
type report struct {
	Collective string       `json:"collective"`
	Bytes      int64        `json:"bytes"`
	Ranks      int          `json:"ranks"`
	Nodes      int          `json:"nodes"`
	Machine    string       `json:"machine"`
	Plan       string       `json:"plan"`
	NS         float64      `json:"simulated_ns"`
	Steps      int64        `json:"steps"`
	Messages   int64        `json:"messages"`
	Programs   int          `json:"programs"` // different ones
	Links      []linkReport `json:"links"`    // the busiest of each level and direction
	Path       []pathReport `json:"path"`
	StandsFor  int          `json:"stands_for,omitempty"` // how many equal nodes the simulated one stands for; 0: all are simulated
}

type linkReport struct {
	Level    string  `json:"level"`
	Way      string  `json:"way"` // out or in
	Domain   string  `json:"domain"`
	Busy     float64 `json:"busy"` // share of the time
	WaitedNS float64 `json:"waited_ns"`
	Messages int64   `json:"messages"`
	Bytes    int64   `json:"bytes"`
}

type pathReport struct {
	Rank    int     `json:"rank"`
	Step    string  `json:"step"`
	Cause   string  `json:"cause"`
	BeginNS float64 `json:"begin_ns"`
	EndNS   float64 `json:"end_ns"`
}

func (s *simulation) report(plan tasks.Plan, job *sim.Job, r *sim.Result, path []viz.PathPiece) report {
	all := report{
		Collective: s.request.Coll.String(), Bytes: s.request.Bytes(), Ranks: s.on.Size(), Nodes: s.on.Nodes(),
		Machine: kit.MachineText(s.file, s.machine), Plan: plan.String(), NS: r.Time.Nanoseconds(),
		Steps: r.Steps, Messages: r.Messages, Programs: job.Forms(), Links: []linkReport{}, Path: []pathReport{},
	}
	if n := job.StandsFor(); n > 1 {
		all.StandsFor = n
	}
	for _, u := range busiest(r.Links) {
		all.Links = append(all.Links, linkReport{
			string(rune(u.level)), u.way, u.name(s.on), kit.Round(share(u.Busy, r.Time), 1e4), u.Waited.Nanoseconds(), u.Messages, u.Bytes,
		})
	}
	for i, p := range r.Path {
		all.Path = append(all.Path, pathReport{int(p.Rank), path[i].Label, path[i].Cause, p.Begin.Nanoseconds(), p.End.Nanoseconds()})
	}
	return all
}

// share returns a part of a time, from 0 on.
func share(part, whole sim.Time) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// header names the request and the machine.
func (s *simulation) header() string {
	return fmt.Sprintf("%v on %v, simulated on %s\n", s.request, s.on, kit.MachineText(s.file, s.machine))
}

// text is the printed form of one plan.
func (s *simulation) text(plan tasks.Plan, job *sim.Job, r *sim.Result, ends *viz.Ends, path []viz.PathPiece) []byte {
	var b bytes.Buffer
	b.WriteString(s.header())
	fmt.Fprintf(&b, "plan: %v\n", plan)
	fmt.Fprintf(&b, "time: %v", r.Time)
	if n := s.request.AllBytes(s.on.Size()); n > 0 && r.Time > 0 {
		fmt.Fprintf(&b, ", %s", kit.RateText(1e9*float64(n)/r.Time.Nanoseconds()))
	}
	fmt.Fprintf(&b, "\n%d steps of %d different programs, %d messages of %s\n", r.Steps, job.Forms(), r.Messages, tasks.FormatBytes(r.Bytes))
	if n := job.StandsFor(); n > 1 {
		fmt.Fprintf(&b, "One of %d equal nodes was simulated, and stands for all. The links are its own.\n", n)
	}
	b.WriteString(ends.String())
	if len(r.Links) > 0 {
		b.WriteString("\n")
		w := kit.NewTable(&b)
		fmt.Fprintln(w, "level\tbusiest\tbusy\twaited\tmessages\tbytes")
		for _, u := range busiest(r.Links) {
			fmt.Fprintf(w, "%c %s\t%s\t%.1f%%\t%v\t%d\t%s\n", u.level, u.way, u.name(s.on), 100*share(u.Busy, r.Time), u.Waited, u.Messages, tasks.FormatBytes(u.Bytes))
		}
		w.Flush()
	}
	if s.isLarge && job.StandsFor() == 1 {
		b.WriteString("\nThe critical path is left out: it would need more than half of the memory that is there.\n")
	}
	if len(path) > 0 {
		fmt.Fprintf(&b, "\ncritical path, which ends on rank %d:\n", path[len(path)-1].Rank)
		b.Write(viz.PathShares(path))
	}
	if s.path > 0 {
		b.WriteString("\n")
		b.Write(viz.PathText(path, s.path))
	}
	return b.Bytes()
}
