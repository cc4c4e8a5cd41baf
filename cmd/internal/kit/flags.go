package kit

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/tasks"
)

// Problem has the values of flags shared by several commands: a request and a machine.
type Problem struct {
	command *cobra.Command // has the flags
	Topo    string         // --topo: a spec, a file's name, or JSON
	Bytes   string         // --bytes: sizes of a rank's buffer
	Counts  string         // --counts: elements of each rank's block; empty: Bytes counts
	Type    string         // --dtype
	Op      string         // --reduce-op
	Root    int            // --root: a rank
	Plan    string         // --plan; empty: the environment's
	Table   string         // --table: a file's name; empty: the environment's
	Link    string         // --link; empty: defaultLink if there are several nodes
	Job     Job            // nil before RunOnJob
	Sealed  Job            // the same ranks, with TLS between nodes; nil: RunSealed was not called
	machine []byte         // of --machine: its prices choose plans; nil: the environment's
}

// WhichCollective lists the collectives for help texts and complaints.
var WhichCollective = "a collective: " + AnyOf(tasks.Requestable())

// Texts of flags of several commands.
const (
	topoText = "machine: 4x2 is 4 nodes of 2 ranks; or a file of JSON"
	// PlanText is the text of --plan.
	PlanText = "plan, such as shape=han,fs=256KiB,i=adapt/chain,s=sm"
)

// BytesText is the text of --bytes for one size.
var BytesText = "size of a rank's buffer; of " + enumerate(slices.DeleteFunc(tasks.Requestable(), func(c tasks.Collective) bool { return !c.HasBlocks() }), "and") + ": of one block"

// RootText is the text of --root.
var RootText = "root of " + enumerate(tasks.CollectivesWith(tasks.Collective.IsRooted), "and")

// IsGiven reports whether the user gave a flag.
func (p *Problem) IsGiven(name string) bool { return p.command.Flags().Changed(name) }

// CheckExclusive complains if the user gave more than one of some flags.
func (p *Problem) CheckExclusive(names ...string) error {
	var given []string
	for _, name := range names {
		if p.IsGiven(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) < 2 {
		return nil
	}
	return Usagef("%s exclude each other: give one", strings.Join(given, " and "))
}

// AddTopoFlag adds --topo with a default value.
func (p *Problem) AddTopoFlag(c *cobra.Command, value string) {
	p.command = c
	c.Flags().StringVar(&p.Topo, "topo", value, topoText)
}

// AddJobFlags adds --topo and --link.
func (p *Problem) AddJobFlags(c *cobra.Command) {
	p.AddTopoFlag(c, "4x2")
	c.Flags().StringVar(&p.Link, "link", "", linkText)
}

// AddPlannedFlags adds the flags that [Problem.ReadPlanned] reads, but for --table.
func (p *Problem) AddPlannedFlags(c *cobra.Command, planText string) {
	p.AddTopoFlag(c, "4x2")
	p.AddRequestFlags(c, "1MiB", BytesText)
	p.AddCountsFlag(c)
	p.AddPlanFlag(c, planText)
}

// AddRequestFlags adds --bytes, --dtype, --reduce-op and --root.
func (p *Problem) AddRequestFlags(c *cobra.Command, bytes, bytesText string) {
	p.AddDataFlags(c, bytes, bytesText)
	c.Flags().IntVar(&p.Root, "root", 0, RootText)
}

// AddDataFlags adds --bytes, --dtype and --reduce-op.
func (p *Problem) AddDataFlags(c *cobra.Command, bytes, bytesText string) {
	p.command = c
	c.Flags().StringVar(&p.Bytes, "bytes", bytes, bytesText)
	c.Flags().StringVar(&p.Type, "dtype", "f32", "element type")
	c.Flags().StringVar(&p.Op, "reduce-op", "sum", "operation of reductions")
}

// AddCountsFlag adds --counts.
func (p *Problem) AddCountsFlag(c *cobra.Command) {
	c.Flags().StringVar(&p.Counts, "counts", "", "elements of each rank's block, such as 1,0,3, in place of --bytes: "+AnyOf(withCounts())+" of blocks that differ; alltoall takes such a row for each rank: 1,0;3,2")
}

// AddPlanFlag adds --plan.
func (p *Problem) AddPlanFlag(c *cobra.Command, text string) {
	p.command = c
	c.Flags().StringVar(&p.Plan, "plan", "", text)
}

// AddTableFlag adds --table.
func (p *Problem) AddTableFlag(c *cobra.Command) {
	c.Flags().StringVar(&p.Table, "table", "", "file of a decision table (default $"+env.Table+")")
}

// withCounts lists the collectives with blocks of different lengths.
func withCounts() []tasks.Collective {
	return slices.DeleteFunc(tasks.Requestable(), func(c tasks.Collective) bool { return !c.HasCounts() && !c.HasMatrix() })
}
