package planner

import (
	"errors"
	"fmt"
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

// MachineOff in [Options.Machine] is no file's name: nothing is known.
const MachineOff = "off"

// knownMachine is a machine and where it is from.
type knownMachine struct {
	*machine.Machine
	origin string // a file's name, or the option
	why    string // there is no machine; empty: there is one
}

// machine reads the machine of the options or the environment; nil if nothing is known.
func (o *Options) machine() (m *knownMachine, err error) {
	name, origin := o.Machine, "Options.Machine"
	switch {
	case o.Machine != "" && o.MachineData != nil:
		return nil, errors.New("Options: Machine and MachineData are both given; give one")
	case o.MachineData != nil:
		m, err = parseMachine("Options.MachineData", o.MachineData)
		return m, err
	case name == "":
		name, origin = os.Getenv(MachineVariable), MachineVariable
	}
	switch name {
	case "", MachineOff:
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; allowed are a machine's file and %s", origin, err, MachineOff)
	}
	if m, err = parseMachine(name, data); err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	return m, nil
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
	if b.Choice, err = priced.Choose(k.Machine, r, t, ruled, reg); err != nil {
		return nil, fmt.Errorf("%v: %w", r, err)
	}
	return b, nil
}

// explain adds what the plan costs, and by what others cost more.
func (b *bid) explain(text *strings.Builder) {
	if b.on.Machine == nil {
		fmt.Fprintf(text, "  machine: not known, the built-in rule decides: %s\n", b.on.why)
		return
	}
	fmt.Fprintf(text, "  machine: %s, %s", b.on.origin, b.on.Provenance.Method)
	if date := b.on.Provenance.Date; date != "" {
		fmt.Fprintf(text, ", %s", date)
	}
	text.WriteByte('\n')
	if b.on.why != "" {
		fmt.Fprintf(text, "  not measured: %s\n", b.on.why)
	}
	if len(b.Offers) == 0 {
		if ns := b.Rule.Price.NS; ns > 0 {
			fmt.Fprintf(text, "  price: %.1f µs, no other plan has one\n", ns/1e3)
		}
		return
	}
	best := b.Offers[0]
	fmt.Fprintf(text, "  price: %.1f µs: %s\n", best.Price.NS/1e3, parts(&best.Price.Terms))
	if !b.Ruled {
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
	if at < 0 || other.NS <= best.NS {
		return "about the same"
	}
	return fmt.Sprintf("%.1f%% more: %s takes %.1f µs more", 100*(other.NS/best.NS-1), price.Names()[at], most/1e3)
}
