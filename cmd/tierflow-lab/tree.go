package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/tree"
)

// module is the path of the measured module.
const module = "github.com/tierflow/tierflow"

// laboratory is the folder of the packages outside of the product.
const laboratory = "cmd/tierflow-lab"

// treeCommand returns the command tree.
func treeCommand() *cobra.Command {
	json := false
	c := &cobra.Command{
		Use:   "tree [FOLDER]",
		Short: "Measure tierflow's source: lines, exported names, what a package stands on",
		Long: `Measures the source tree in FOLDER (default .), package by package and in sums of the
product, of what only tests use, of the laboratory and of testdata:

lines are those of files but tests, and test:code is how many lines of tests there are for
each. Names are the exported ones that other modules may use: functions, types, methods,
constants and variables, none of commands and of folders called internal. Below are the
packages of the tree that a package stands on, and their lines together.`,
		Args: cobra.MaximumNArgs(1),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			folder := "."
			if len(args) == 1 {
				folder = args[0]
			}
			if _, err := os.Stat(filepath.Join(folder, "go.mod")); err != nil {
				return kit.Usagef("%s: give the folder of tierflow's module: %w", folder, err)
			}
			rows, err := tree.Measure(c.Context(), folder, module, "./"+laboratory+"/...", "./testdata/apps/...", "./testdata/cluster/...")
			if err != nil {
				return err
			}
			rows = append(rows, sums(rows)...)
			return labkit.Print(c.OutOrStdout(), json, rows, labkit.Right, func(w io.Writer) { printTree(w, rows) })
		}),
	}
	c.Flags().BoolVar(&json, "json", false, "print JSON")
	return c
}

// sums returns the numbers of the product, of what only tests use, of the laboratory, of testdata, and of all.
func sums(rows []tree.Measures) []tree.Measures {
	all := []tree.Measures{{Package: "product"}, {Package: "support of tests"}, {Package: "laboratory"}, {Package: "testdata"}, {Package: "all"}}
	for _, r := range rows {
		part := 0
		switch {
		case r.Package == laboratory || strings.HasPrefix(r.Package, laboratory+"/"):
			part = 2
		case strings.HasPrefix(r.Package, "testdata/"):
			part = 3
		case r.Support:
			part = 1
		}
		all[part].Add(r)
		all[4].Add(r)
	}
	return all
}

// printTree writes a line for each package.
func printTree(w io.Writer, rows []tree.Measures) {
	lines := map[string]int{}
	for _, r := range rows {
		lines[r.Package] = r.Lines
	}
	fmt.Fprintln(w, "lines\ttest:code\tnames\tbelow\ttheir lines\t package")
	for _, r := range rows {
		below := 0
		for _, d := range r.Deps {
			below += lines[d]
		}
		fmt.Fprintf(w, "%d\t%.2f\t%d\t%d\t%d\t %s\n", r.Lines, float64(r.TestLines)/float64(max(r.Lines, 1)), r.Count, len(r.Deps), below, r.Package)
	}
}
