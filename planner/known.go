package planner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// MachineVariable is the environment variable that says what is known of the machine, see
// [Options.Machine].
const MachineVariable = "TIERFLOW_MACHINE"

// Words of [Options.Machine] that are no file's name.
const (
	MachineOff     = "off"
	MachineMeasure = "measure" // alone, or with a colon and a file's name
)

// knownMachine is a machine and where it is from.
type knownMachine struct {
	*machine.Machine
	origin string // a file's name, or the option
	why    string // there is no machine, or it isn't kept; empty: all is well
}

// wish is what the options or the environment say of the machine.
type wish struct {
	machine  *knownMachine // nil: there is none yet
	measures bool          // it is to be measured, unless machine is of the same ranks
	keep     string        // file for what was measured; empty: none
}

// wish reads what the options or the environment say of the machine.
func (o *Options) wish() (w wish, err error) {
	name, origin := o.Machine, "Options.Machine"
	switch {
	case o.Machine != "" && o.MachineData != nil:
		return w, errors.New("Options: Machine and MachineData are both given; give one")
	case o.MachineData != nil:
		w.machine, err = parseMachine("Options.MachineData", o.MachineData)
		return w, err
	case name == "":
		name, origin = os.Getenv(MachineVariable), MachineVariable
	}
	if name == "" || name == MachineOff {
		return w, nil
	}
	file, measures := strings.CutPrefix(name, MachineMeasure+":")
	if w.measures = measures || name == MachineMeasure; w.measures {
		if !measures {
			return w, nil
		}
		w.keep = file
	}
	data, err := os.ReadFile(file)
	if measures && errors.Is(err, fs.ErrNotExist) {
		return w, nil // this job makes it
	}
	if err != nil {
		return w, fmt.Errorf("%s: %w; allowed are a machine's file, %s, %s:FILE and %s", origin, err, MachineMeasure, MachineMeasure, MachineOff)
	}
	if w.machine, err = parseMachine(file, data); err != nil {
		return w, fmt.Errorf("%s: %w", origin, err)
	}
	return w, nil
}

// on completes the wish for a topology: a machine that other ranks have measured is measured
// again. A machine without a link that t needs is an error.
func (w *wish) on(t *levels.Topology) error {
	if w.measures && w.machine != nil && w.machine.Provenance.Ranks != ranksOf(t) {
		w.machine = nil
	}
	w.measures = w.measures && w.machine == nil
	return w.machine.check(t)
}

// ranksOf says what ranks measure a machine: processes find other numbers than goroutines.
func ranksOf(t *levels.Topology) string {
	if t.IsOneProcess() {
		return "goroutines " + t.String()
	}
	return "processes " + t.String()
}

// maxMachine bounds a machine's file, which rank 0 tells all ranks, bytes.
const maxMachine = 32 << 10

func parseMachine(origin string, data []byte) (*knownMachine, error) {
	if len(data) > maxMachine {
		return nil, fmt.Errorf("%s: a machine of %d bytes; allowed are %d", origin, len(data), maxMachine)
	}
	m, err := machine.Parse(origin, data)
	if err != nil {
		return nil, err
	}
	return &knownMachine{Machine: m, origin: origin}, nil
}

// check is an error if the machine has no link that t needs.
func (k *knownMachine) check(t *levels.Topology) error {
	if k == nil || k.Machine == nil {
		return nil
	}
	if _, err := price.New(k.Machine, t, tasks.Request{Coll: tasks.Barrier}); err != nil {
		return fmt.Errorf("%s: %w", k.origin, err)
	}
	return nil
}

// bid is what prices say of a decision.
type bid struct {
	priced.Choice
	on *knownMachine
}

// hastily begins how the numbers of a machine were found that the ranks of a job have
// measured when they joined.
const hastily = "measured by pairs of ranks in "

// offer asks what costs least, where nothing is forced. ruled is the rule's plan. It
// returns nil if there is no machine, not even one that could not be measured.
func (k *knownMachine) offer(r tasks.Request, t *levels.Topology, ruled, forced tasks.Plan, reg submodules.Registry) (*bid, error) {
	if k == nil {
		return nil, nil
	}
	b := &bid{on: k, Choice: priced.Choice{Ruled: true}}
	if k.Machine == nil || forced.String() != "" {
		return b, nil
	}
	var err error
	if b.Choice, err = priced.Choose(k.Machine, r, t, ruled, reg, k.margin(t)); err != nil {
		return nil, fmt.Errorf("%v: %w", r, err)
	}
	return b, nil
}

// margin returns by which share of its own price a plan must be cheaper than the rule's to be
// chosen on this machine.
func (k *knownMachine) margin(t *levels.Topology) float64 {
	switch {
	case !strings.HasPrefix(k.Provenance.Method, hastily):
		return priced.Exact
	case k.isSlow(t):
		return slowMargin
	}
	return priced.Hasty
}

// isSlow reports whether a byte takes [slowByte] or more on all wires between nodes of t. The
// built-in rule's rows were found on such links. What disturbs a short measurement makes prices
// there more wrong than the rule is.
func (k *knownMachine) isSlow(t *levels.Topology) bool {
	slow := false
	for level := range t.Depth() {
		if t.Domains(level) >= t.Nodes() {
			continue // inside nodes
		}
		l, err := k.Link(t.Level(level))
		if err == nil && l.Byte < slowByte {
			return false
		}
		slow = true
	}
	return slow
}

const (
	// slowByte is what a byte takes, ns, from which on a link counts as slow: some 2.7 Gbit/s.
	// Links of 1 Gbit/s were measured at 3.7 to 8.2 ns, links without a set rate at 0.2 to
	// 1.9, the latter on busy processors.
	slowByte = 3
	// slowMargin takes the place of [priced.Hasty] on slow links: the rule's plan stays unless
	// it costs twice as much.
	slowMargin = 1
)

// explain adds what the plan costs, and by what others cost more.
func (b *bid) explain(t *levels.Topology, text *strings.Builder) {
	if b.on.Machine == nil {
		fmt.Fprintf(text, "  machine: not known, the built-in rule decides: %s\n", b.on.why)
		return
	}
	fmt.Fprintf(text, "  machine: %s, %s", b.on.origin, b.on.Provenance.Method)
	if date := b.on.Provenance.Date; date != "" {
		fmt.Fprintf(text, ", %s", date)
	}
	text.WriteByte('\n')
	for _, l := range b.on.Links {
		fmt.Fprintf(text, "  link %c: latency %.4g µs, a byte %.3g ns, a message %.3g µs of the sender and %.3g of the receiver\n",
			l.Level, l.Latency/1e3, max(l.Byte, l.SendByte), l.Send/1e3, l.Recv/1e3)
	}
	if b.on.why != "" {
		fmt.Fprintf(text, "  machine: %s\n", b.on.why)
	}
	if b.on.margin(t) == slowMargin {
		text.WriteString("  machine: slow links, measured in a hurry: the rule's plan stays unless it costs twice as much\n")
	}
	if len(b.Offers) == 0 {
		if ns := b.Rule.Price.NS; ns > 0 {
			fmt.Fprintf(text, "  price: %.1f µs, no other plan has one\n", ns/1e3)
		}
		return
	}
	best := b.Offers[0]
	fmt.Fprintf(text, "  price: %.1f µs: %s\n", best.Price.NS/1e3, parts(&best.Price.Terms))
	switch {
	case b.Ruled:
	case b.Rule.Price.NS == 0:
		fmt.Fprintf(text, "  price: the rule's plan %v has none\n", b.Rule.Plan)
	default:
		fmt.Fprintf(text, "  price: %.1f%% less than that of the rule's plan %v: %s\n", 100*b.Saved, b.Rule.Plan, loss(&best.Price, &b.Rule.Price))
	}
	for _, o := range b.Offers[1:] {
		fmt.Fprintf(text, "  runner-up: %v: %.1f µs, %s\n", o.Plan, o.Price.NS/1e3, loss(&best.Price, &o.Price))
	}
}

// parts lists the terms of a price that matter, µs.
func parts(t *price.Terms) string {
	var all []string
	for i, ns := range t.Values() {
		if ns >= 50 {
			all = append(all, fmt.Sprintf("%s %.1f", price.Names()[i], ns/1e3))
		}
	}
	return strings.Join(all, ", ")
}

// loss says by which term a price is most above another one.
func loss(best, other *price.Price) string {
	most, at := 0.0, -1
	mine := best.Values()
	for i, ns := range other.Values() {
		if ns-mine[i] > most {
			most, at = ns-mine[i], i
		}
	}
	if other.NS < best.NS {
		return fmt.Sprintf("%.1f%% less, which prices are off", 100*(1-other.NS/best.NS))
	}
	if at < 0 || other.NS == best.NS {
		return "the same"
	}
	return fmt.Sprintf("%.1f%% more: %s takes %.1f µs more", 100*(other.NS/best.NS-1), price.Names()[at], most/1e3)
}
