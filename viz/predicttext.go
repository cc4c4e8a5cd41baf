package viz

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
)

// mostSurplus is how many steps PredictionText lists.
const mostSurplus = 10

// stepKey is a step of a call.
type stepKey struct {
	call callKey
	rank levels.Rank
	pass uint32
	step int32
}

// ownTimes returns how long each step took of itself: a message from when both of its ends could go on.
func ownTimes(c *TracedCall, add func(key stepKey, e *trace.Event, took int64)) {
	t := newTraced(c.Events)
	if t == nil {
		return
	}
	for i := range t.events {
		e := &t.events[i]
		from := e.Begin
		if _, when := t.otherEnd(i); when > from {
			from = min(when, e.End)
		}
		add(stepKey{callKey{c.Comm, c.Seq}, e.Rank, e.Pass, e.Step}, e, e.End-from)
	}
}

// PredictionText compares a job's calls with their predictions, in tables: by request, by
// kind of step, and the steps with the largest surplus. name is the machine's.
func PredictionText(j *JobTrace, p *Prediction, name string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "beside what is predicted on %s, for ranks that come as they did:\n", name)
	measured := map[callKey]*TracedCall{}
	for i := range j.Calls {
		measured[callKey{j.Calls[i].Comm, j.Calls[i].Seq}] = &j.Calls[i]
	}
	rows := [][]string{{"request", "call", "measured", "predicted", "ratio"}}
	took := map[stepKey]int64{}
	for i := range p.Calls {
		c := &p.Calls[i]
		was := measured[callKey{c.Comm, c.Seq}]
		rows = append(rows, []string{c.Request, fmt.Sprint(c.Seq), was.Length().String(), c.Length().String(), quotient(int64(was.Length()), int64(c.Length()))})
		ownTimes(c, func(key stepKey, _ *trace.Event, ns int64) { took[key] = ns })
	}
	if len(p.Calls) > 0 {
		b.Write(align(rows))
	}
	var all []surplus
	for i := range p.Calls {
		c := measured[callKey{p.Calls[i].Comm, p.Calls[i].Seq}]
		ownTimes(c, func(key stepKey, e *trace.Event, ns int64) {
			task, label, kind, _, _ := e.Source.Describe(e.Step)
			all = append(all, surplus{c, *e, label, kindOf(task) + " " + kind, ns, took[key]})
		})
	}
	writeKinds(&b, all)
	writeSurplus(&b, all, j.Nodes)
	for _, left := range p.Left {
		fmt.Fprintf(&b, "not predicted: %s\n", left)
	}
	return b.Bytes()
}

// surplus is a step with its measured and its predicted time.
type surplus struct {
	call            *TracedCall
	event           trace.Event
	label, kind     string // kind: ib recv
	took, predicted int64  // ns
}

// writeKinds sums up steps by task and kind: ib recv.
func writeKinds(b *bytes.Buffer, all []surplus) {
	kinds := groupBy(all, func(s *surplus) string { return s.kind })
	if len(kinds) == 0 {
		return
	}
	slices.SortFunc(kinds, func(a, b []int) int { return cmp.Compare(all[a[0]].kind, all[b[0]].kind) })
	rows := [][]string{{"kind of step", "steps", "half of them", "predicted", "ratio", "95 %", "predicted", "ratio"}}
	for _, same := range kinds {
		var took, predicted []int64
		for _, i := range same {
			took, predicted = append(took, all[i].took), append(predicted, all[i].predicted)
		}
		slices.Sort(took)
		slices.Sort(predicted)
		row := []string{all[same[0]].kind, fmt.Sprint(len(same))}
		for _, at := range []int{len(same) / 2, min(len(same)-1, len(same)*95/100)} {
			row = append(row, time.Duration(took[at]).String(), time.Duration(predicted[at]).String(), quotient(took[at], predicted[at]))
		}
		rows = append(rows, row)
	}
	b.Write(align(rows))
}

// writeSurplus lists the steps with the longest time beyond the predicted one, with their link or rank.
func writeSurplus(b *bytes.Buffer, all []surplus, nodes []string) {
	slices.SortStableFunc(all, func(x, y surplus) int { return cmp.Compare(y.took-y.predicted, x.took-x.predicted) })
	rows := [][]string{{"longest beyond that", "measured", "predicted", "where", "request", "call"}}
	for _, s := range all[:min(mostSurplus, len(all))] {
		if s.took <= s.predicted {
			break
		}
		me := s.call.Members[s.event.Rank]
		where := fmt.Sprintf("r%d (%s)", me, nodes[me])
		if m, _, ok := MessageOf(&s.event); ok {
			if from, to := nodes[s.call.Members[m.From]], nodes[s.call.Members[m.To]]; from != to {
				where = from + ">" + to
			}
		}
		rows = append(rows, []string{s.label, time.Duration(s.took).String(), time.Duration(s.predicted).String(), where, s.call.Request, fmt.Sprint(s.call.Seq)})
	}
	if len(rows) > 1 {
		b.Write(align(rows))
	}
}

// quotient is two times by each other; empty if one is nothing.
func quotient(a, b int64) string {
	if a <= 0 || b <= 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}
