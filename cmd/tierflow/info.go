package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// information is the output of info --json.
type information struct {
	Version     string          `json:"version"`
	Go          string          `json:"go"`
	OS          string          `json:"os"`
	Arch        string          `json:"arch"`
	CPUs        int             `json:"cpus"`
	Between     string          `json:"between_nodes"` // connections between nodes, by TIERFLOW_TLS
	AES         bool            `json:"aes_instructions"`
	Collectives []string        `json:"collectives"`
	Shapes      []shapeInfo     `json:"shapes"`
	Submodules  []submoduleInfo `json:"submodules"`
	Kernels     []kernelInfo    `json:"kernels"`
}

type shapeInfo struct {
	Name        string   `json:"name"`
	Doc         string   `json:"doc"`
	Collectives []string `json:"collectives"`
	Source      string   `json:"source"`
}

type submoduleInfo struct {
	Name       string          `json:"name"`
	Doc        string          `json:"doc"`
	Between    string          `json:"between"`
	Algorithms []algorithmInfo `json:"algorithms"`
}

type algorithmInfo struct {
	Name         string   `json:"name"`
	Doc          string   `json:"doc"`
	Tasks        []string `json:"tasks"`
	InnerSegment bool     `json:"inner_segment"`
	Number       string   `json:"number,omitempty"`  // meaning of a plan's number; empty: it takes none
	Numbers      []int    `json:"numbers,omitempty"` // tried by searches beside the default
	Inners       []int64  `json:"inners,omitempty"`  // inner segments tried by searches beside those for all
	Restrictions []string `json:"restrictions"`
	Source       string   `json:"source"`
}

// kernelInfo names, by operation, the kernel for elements of a type.
type kernelInfo struct {
	Datatype string            `json:"datatype"`
	Bytes    int               `json:"bytes"`
	By       map[string]string `json:"by"`
}

func infoCommand(reg submodules.Registry) *cobra.Command {
	var asJSON, isHere, forgets, theirs, isEnv bool
	c := &cobra.Command{
		Use:   "info",
		Short: "Say what there is to choose from, and what this host offers",
		Long: `Lists the submodules with their algorithms, what these need and where they come
from; the shapes in the same way; and for each element type and operation which kernel combines
elements on this CPU.

--foreign lists algorithms of Open MPI and MPICH. Forced plans may name one, as bcast:ompi=6
or bcast:mpich=binomial: in tierflow's commands, in TIERFLOW_PLAN of programs under tierflow
run, and in C. Other Go programs import package planner/rules/foreign for it.

--env lists all environment variables with their values here, whose value counts in a job of
processes (equal: all ranks have the same), and what they are for.

--here says what a job of this user would choose plans by: variables, and the machines and
tables that earlier jobs have kept. --forget removes these.`,
		Example: `  tierflow info
  tierflow info --foreign
  tierflow info --json
  tierflow info --env
  tierflow info --here`,
		Args: kit.NoOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			if theirs {
				return foreignTable(c.OutOrStdout(), asJSON)
			}
			if isEnv {
				vars := describeVariables(os.Environ())
				return kit.WriteResult(c.OutOrStdout(), asJSON, vars, func() []byte { return variablesText(vars) })
			}
			if isHere || forgets {
				return runHostState(c.OutOrStdout(), forgets, asJSON)
			}
			i := describeHost(reg)
			return kit.WriteResult(c.OutOrStdout(), asJSON, i, i.text)
		},
	}
	c.Flags().BoolVar(&theirs, "foreign", false, "list the algorithms of Open MPI and MPICH, and the plans that do the same")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&isHere, "here", false, "say what a job here would choose plans by")
	c.Flags().BoolVar(&forgets, "forget", false, "remove the machines and tables that jobs have kept")
	c.Flags().BoolVar(&isEnv, "env", false, "list the environment variables, and their values here")
	c.MarkFlagsMutuallyExclusive("here", "forget", "foreign", "env")
	return c
}

// describeHost collects shapes and submodules of reg, and the kernels of this CPU.
func describeHost(reg submodules.Registry) information {
	i := information{
		Version: kit.Version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
		Between: describeTLS(os.Getenv(env.TLS)), AES: seal.IsFast(),
		Collectives: kit.Names(tasks.Requestable()), Kernels: listKernels(),
	}
	for _, s := range tasks.Shapes() {
		info := shapeInfo{Name: s.String(), Doc: s.Doc(), Source: s.Source()}
		for _, c := range tasks.Requestable() {
			if s.Fits(c) {
				info.Collectives = append(info.Collectives, c.String())
			}
		}
		i.Shapes = append(i.Shapes, info)
	}
	for _, s := range reg {
		info := submoduleInfo{Name: s.Name(), Doc: s.Doc(), Between: "any ranks"}
		if s.Reach() == submodules.SharedNode {
			info.Between = "ranks that share memory"
		}
		for _, a := range s.Algorithms() {
			info.Algorithms = append(info.Algorithms, algorithmInfo{
				Name: a.Name, Doc: a.Doc, Tasks: kit.Names(a.Ops), InnerSegment: a.Inner,
				Number: a.Number.String(), Numbers: a.Number.Worth, Inners: a.Inners,
				Restrictions: kit.Names(a.Needs), Source: a.Source,
			})
		}
		i.Submodules = append(i.Submodules, info)
	}
	return i
}

// describeTLS describes connections between nodes under a setting.
func describeTLS(setting string) string {
	text, err := join.DescribeTLS(setting)
	if err != nil {
		return fmt.Sprintf("no job can be joined: TIERFLOW_TLS: %v", err)
	}
	return fmt.Sprintf("%s (TIERFLOW_TLS=%s)", text, cmp.Or(setting, "off"))
}

// listKernels returns the kernels of all types with any.
func listKernels() []kernelInfo {
	var all []kernelInfo
	types := tasks.Datatypes()
	for _, t := range tasks.Datatypes() {
		types = append(types, tasks.LocOf(t))
	}
	for _, t := range types {
		k := kernelInfo{Datatype: t.String(), Bytes: t.Size(), By: map[string]string{}}
		for _, op := range tasks.Ops() {
			if by := kernel.Impl(op, t); t.Valid() && by != "" {
				k.By[op.String()] = by
			}
		}
		if len(k.By) > 0 {
			all = append(all, k)
		}
	}
	return all
}

func (i *information) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tierflow %s, %s, %s/%s, %d CPUs\n", i.Version, i.Go, i.OS, i.Arch, i.CPUs)
	fmt.Fprintf(&b, "between nodes: %s; instructions for AES: %s\n\n", i.Between, map[bool]string{true: "yes", false: "no"}[i.AES])
	b.WriteString(i.catalogue())
	b.WriteString("\nkernels: what combines elements on this CPU (- is not defined)\n")
	b.WriteString(kernel.Describe())
	return b.Bytes()
}

// catalogue returns the part equal on all hosts.
func (i *information) catalogue() string {
	var b strings.Builder
	fmt.Fprintf(&b, "collectives: %s\n", strings.Join(i.Collectives, ", "))
	b.WriteString("\nshapes: how a collective becomes tasks\n")
	w := kit.NewTable(&b)
	for _, s := range i.Shapes {
		of := strings.Join(s.Collectives, ", ")
		if len(s.Collectives) == len(i.Collectives) {
			of = "all"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", s.Name, of, s.Doc)
	}
	w.Flush() // into memory
	for _, s := range i.Shapes {
		fmt.Fprintf(&b, "  %s is from %s\n", s.Name, s.Source)
	}
	for _, s := range i.Submodules {
		fmt.Fprintf(&b, "\n%s: %s; between %s\n", s.Name, s.Doc, s.Between)
		w := kit.NewTable(&b)
		for _, a := range s.Algorithms {
			inner := "no inner segment"
			if a.InnerSegment {
				inner = "inner segment"
			}
			fmt.Fprintf(w, "  %s/%s\t%s\t%s\t%s\n", s.Name, a.Name, strings.Join(a.Tasks, ", "), inner, a.Doc)
		}
		w.Flush() // into memory
		for _, a := range s.Algorithms {
			if a.Number != "" {
				fmt.Fprintf(&b, "  %s/%s takes a number, as %s/%s//3: %s\n", s.Name, a.Name, s.Name, a.Name, a.Number)
			}
			for _, r := range a.Restrictions {
				fmt.Fprintf(&b, "  %s/%s does %s\n", s.Name, a.Name, r)
			}
			fmt.Fprintf(&b, "  %s/%s is from %s\n", s.Name, a.Name, a.Source)
		}
	}
	return b.String()
}
