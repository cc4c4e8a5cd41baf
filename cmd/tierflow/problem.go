package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// problem is the flags that say what to do, and on what machine.
type problem struct {
	command *cobra.Command
	topo    string
	bytes   string
	counts  string // elements of each rank in place of bytes; empty: none
	dtype   string
	op      string
	root    int
	plan    string
	table   string
	link    string
	job     job // once onJob has it
}

// The collectives in help texts and complaints.
var whichCollective = "a collective: " + anyOf(tasks.Requestable())

// Texts of flags that several commands have.
const (
	topoText = "machine: 4x2 is 4 nodes of 2 ranks; or a file of JSON"
	planText = "plan, such as shape=han,fs=256KiB,i=adapt/chain,s=sm"
)

var rootText = "root of " + listed(tasks.CollectivesWith(tasks.Collective.IsRooted), "and")

// isGiven reports whether the user gave a flag.
func (p *problem) isGiven(name string) bool { return p.command.Flags().Changed(name) }

// exclusive complains if more than one of some flags was given.
func (p *problem) exclusive(names ...string) error {
	var given []string
	for _, name := range names {
		if p.isGiven(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) < 2 {
		return nil
	}
	return usagef("%s exclude each other: give one", strings.Join(given, " and "))
}

func (p *problem) topoFlag(c *cobra.Command, value string) {
	p.command = c
	c.Flags().StringVar(&p.topo, "topo", value, topoText)
}

// jobFlags are --topo and --link.
func (p *problem) jobFlags(c *cobra.Command) {
	p.topoFlag(c, "4x2")
	c.Flags().StringVar(&p.link, "link", "", linkText)
}

func (p *problem) requestFlags(c *cobra.Command, bytes, bytesText string) {
	p.dataFlags(c, bytes, bytesText)
	c.Flags().IntVar(&p.root, "root", 0, rootText)
}

// dataFlags are requestFlags without the root.
func (p *problem) dataFlags(c *cobra.Command, bytes, bytesText string) {
	p.command = c
	c.Flags().StringVar(&p.bytes, "bytes", bytes, bytesText)
	c.Flags().StringVar(&p.dtype, "dtype", "f32", "element type")
	c.Flags().StringVar(&p.op, "reduce-op", "sum", "operation of reductions")
}

func (p *problem) countsFlag(c *cobra.Command) {
	c.Flags().StringVar(&p.counts, "counts", "", "elements of each rank's block, such as 1,0,3, in place of --bytes: "+anyOf(withCounts())+" of blocks that differ")
}

func (p *problem) planFlag(c *cobra.Command, text string) {
	p.command = c
	c.Flags().StringVar(&p.plan, "plan", "", text)
}

func (p *problem) tableFlag(c *cobra.Command) {
	c.Flags().StringVar(&p.table, "table", "", "file of a decision table (default $"+planner.TableVariable+")")
}

// withCounts lists the collectives whose blocks may differ.
func withCounts() []tasks.Collective { return tasks.CollectivesWith(tasks.Collective.HasCounts) }
