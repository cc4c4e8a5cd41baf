package kit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError returns the complaint about a flag of c. It names flags of nearly the same name and
// no type of Go's.
func flagError(c *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return UsageError(unknownFlag(c, missing))
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok && words[bad.GetFlag().Value.Type()] != "" {
		flag := bad.GetFlag()
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		return Usagef("%s: %q is no %s", name, bad.GetValue(), words[flag.Value.Type()])
	}
	return UsageError(err)
}

// words are the types of flags parsed by packages strconv and time, in words.
var words = map[string]string{
	"int": "whole number", "int64": "whole number", "uint64": "whole number from 0 on", "float64": "number", "bool": "true or false",
	"duration": "time with a unit, such as 500ms, 5s, 3m or 1h30m",
}

// unknownFlag returns the complaint about a flag unknown to c.
func unknownFlag(c *cobra.Command, missing *pflag.NotExistError) error {
	given, name := "--"+missing.GetSpecifiedName(), missing.GetSpecifiedName()
	if cluster := missing.GetSpecifiedShortnames(); cluster != "" { // -bytes was read as -b -y …
		given, name = "-"+cluster, cluster
	}
	name, _, _ = strings.Cut(name, "=")
	similar := similarFlags(c, name)
	if len(similar) == 0 {
		return fmt.Errorf("unknown flag %s; --help lists all", given)
	}
	return fmt.Errorf("unknown flag %s; did you mean %s?", given, strings.Join(similar, " or "))
}

// similarFlags returns the flags of c with names like the given one, at most three.
func similarFlags(c *cobra.Command, name string) (similar []string) {
	names := &cobra.Command{SuggestionsMinimumDistance: 2} // cobra's measure, for names of commands
	var parts []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		if f.Shorthand == name || len(name) > 1 && strings.HasSuffix(f.Name, name) {
			parts = append(parts, f.Name)
		}
	})
	for _, n := range append(parts, names.SuggestionsFor(name)...) {
		if !slices.Contains(similar, "--"+n) && len(similar) < 3 {
			similar = append(similar, "--"+n)
		}
	}
	return similar
}
