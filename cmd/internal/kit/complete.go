package kit

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tierflow/tierflow/tasks"
)

// completer lists the continuations of a word.
type completer = func(prefix string) []string

// completeAll lets a shell complete the operands and flags of a command and of those below it:
// operands by their names in the command's usage, flags by theirs. Completions of a command's own
// stay.
func completeAll(c *cobra.Command) {
	for _, sub := range c.Commands() {
		completeAll(sub)
	}
	if _, operand, _ := strings.Cut(c.Use, " "); c.ValidArgsFunction == nil {
		c.ValidArgsFunction = completeOperand(operand)
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		words, known := flagWords[f.Name]
		switch _, done := c.GetFlagCompletionFunc(f.Name); {
		case done:
		case known:
			complete(c, f.Name, words)
		case !slices.Contains(fileFlags, f.Name):
			complete(c, f.Name, func(string) []string { return nil })
		}
	})
}

// completeOperand returns the completion of the operands of a usage such as OP|all.
func completeOperand(usage string) cobra.CompletionFunc {
	usage = strings.TrimLeft(usage, "[")
	operand, _, _ := strings.Cut(usage, " ")
	return func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case c.Flags().Changed("recorder"): // files take the place of a collective
			return nil, cobra.ShellCompDirectiveDefault
		case strings.HasPrefix(usage, "OP") && len(args) == 0:
			return completions(collectiveWords(operand != "OP"), prefix)
		case usage == "KIND" && len(args) == 0:
			return completions(kindWords, prefix)
		case strings.Contains(operand, "KIND+KIND"):
			return completions(kindPairs, prefix)
		case strings.HasPrefix(usage, "-o FILE"), strings.HasPrefix(usage, "OP"), usage == "":
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault // names of files and programs
	}
}

// CompleteWords completes the values of a flag with words.
func CompleteWords(c *cobra.Command, flag string, words ...string) {
	complete(c, flag, func(string) []string { return words })
}

// CompleteList completes the values of a flag with words, with commas between them.
func CompleteList(c *cobra.Command, flag string, words []string) { complete(c, flag, listWords(words)) }

// complete registers the completion of a flag.
func complete(c *cobra.Command, flag string, words completer) {
	_ = c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completions(words, prefix)
	}) // an error means: the flag has one already, and keeps it
}

// completions keeps the words that continue prefix. No space is wanted after words with
// continuations of their own.
func completions(words completer, prefix string) (fit []cobra.Completion, how cobra.ShellCompDirective) {
	how = cobra.ShellCompDirectiveNoFileComp
	for _, word := range words(prefix) {
		if strings.HasPrefix(word, prefix) {
			fit = append(fit, word)
		}
	}
	if slices.ContainsFunc(fit, func(w string) bool { return strings.ContainsAny(w[len(w)-1:], "=/,:+") }) || strings.ContainsAny(prefix, "=,") {
		how |= cobra.ShellCompDirectiveNoSpace
	}
	return fit, how
}

// fileFlags are flags for any file or program.
var fileFlags = []string{"output", "svg", "trace", "hostfile", "agent", "recorder", "help", "log-dir", "lib", "out"}

// flagWords completes flags by their names.
var flagWords = map[string]completer{
	"topo":       topologyWords,
	"machine":    machineWords,
	"simulate":   machineWords,
	"table":      jsonFiles,
	"from":       jsonFiles,
	"link":       fixedWords("none", defaultLink, "i=10gbit,20us", "i=100gbit,5us"),
	"plan":       planWords,
	"ops":        collectiveWords(true),
	"dtype":      fixedWords(Names(tasks.Datatypes())...),
	"reduce-op":  fixedWords(Names(tasks.Ops())...),
	"shapes":     listWords(Names(tasks.Shapes())),
	"submodules": listWords(submoduleNames()),
	"map":        fixedWords("block", "rr"),
	"launcher":   fixedWords("local", "ssh", "srun"),
}

func fixedWords(words ...string) completer { return func(string) []string { return words } }

// listWords completes the last word of a list with commas; none comes twice.
func listWords(words []string) completer {
	return func(prefix string) (all []string) {
		before := prefix[:strings.LastIndexByte(prefix, ',')+1]
		for _, w := range words {
			if !slices.Contains(strings.Split(before, ","), w) {
				all = append(all, before+w)
			}
		}
		return all
	}
}

// collectiveWords completes a collective, or a list of them or all.
func collectiveWords(list bool) completer {
	names := Names(tasks.Requestable())
	if !list {
		return fixedWords(names...)
	}
	return func(prefix string) []string {
		all := listWords(names)(prefix)
		if !strings.Contains(prefix, ",") {
			all = append(all, "all")
		}
		return all
	}
}

// topologyWords completes 4x2, a file of JSON, or the order of ranks after a slash.
func topologyWords(prefix string) []string {
	nodes, ranks, hasRanks := strings.Cut(prefix, "x")
	var all []string
	switch _, err := strconv.Atoi(nodes); {
	case prefix == "":
		all = []string{"1x4", "2x2", "2x4", "4x2", "4x4", "8x4"}
	case err == nil && strings.Contains(ranks, "/"):
		all = []string{prefix[:strings.IndexByte(prefix, '/')] + "/rr"}
	case err == nil && hasRanks && ranks != "":
		all = []string{prefix, prefix + "/rr"}
	case err == nil:
		for _, n := range []string{"1", "2", "4", "8", "12", "16", "32"} {
			all = append(all, nodes+"x"+n)
		}
	}
	return append(all, jsonFiles(prefix)...)
}

// machineWords completes a file of a machine, or a word in place of one.
func machineWords(prefix string) []string {
	return append([]string{assumedMachine, loggops}, jsonFiles(prefix)...)
}

// jsonFiles lists the files of JSON and the folders whose names continue prefix.
func jsonFiles(prefix string) (all []string) {
	folder, name := filepath.Split(prefix)
	in := folder
	if in == "" {
		in = "."
	}
	entries, err := os.ReadDir(in)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		switch hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(name, "."); {
		case hidden:
		case e.IsDir():
			all = append(all, folder+e.Name()+"/")
		case strings.HasSuffix(e.Name(), ".json"):
			all = append(all, folder+e.Name())
		}
	}
	return all
}
