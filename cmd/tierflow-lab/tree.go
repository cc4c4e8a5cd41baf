package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/labkit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/tree"
	"github.com/tierflow/tierflow/cmd/tierflow/kit"
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
		Short: "Measure tierflow's source: lines, pairs of files, names, sentences",
		Long: `Measures the source tree in FOLDER (default .), package by package and in sums of the
product and of the laboratory:

lines are those of files but tests, and test:code is how many lines of tests there are for
each. A pair is two files of a package that use each other's names. Uses are arrows from a
file to one whose names it uses; back up are those that go to an earlier file in the best
order of files that is found. One-word is the share of functions and methods whose name is
one word, and relatives are the relative pronouns for each sentence of a comment.`,
		Args: cobra.MaximumNArgs(1),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			folder := "."
			if len(args) == 1 {
				folder = args[0]
			}
			if _, err := os.Stat(filepath.Join(folder, "go.mod")); err != nil {
				return kit.Usagef("%s: give the folder of tierflow's module: %w", folder, err)
			}
			rows, err := tree.Measure(c.Context(), folder, module)
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

// sums returns the numbers of the product, of the laboratory, and of both.
func sums(rows []tree.Measures) []tree.Measures {
	all := []tree.Measures{{Package: "product"}, {Package: "laboratory"}, {Package: "all"}}
	for _, r := range rows {
		part := 0
		if r.Package == laboratory || strings.HasPrefix(r.Package, laboratory+"/") {
			part = 1
		}
		all[part].Add(r)
		all[2].Add(r)
	}
	return all
}

// printTree writes a line for each package.
func printTree(w io.Writer, rows []tree.Measures) {
	ratio := func(a, b int) float64 { return float64(a) / float64(max(b, 1)) }
	fmt.Fprintln(w, "lines\ttest:code\tpairs\tuses\tback up\tfunctions\tone-word\tsentences\trelatives\t package")
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%.2f\t%d\t%d\t%d\t%d\t%.0f%%\t%d\t%.2f\t %s\n", r.Lines, ratio(r.TestLines, r.Lines), r.Pairs, r.Uses, r.BackUp,
			r.Functions, 100*ratio(r.OneWord, r.Functions), r.Sentences, ratio(r.Relatives, r.Sentences), r.Package)
	}
}
