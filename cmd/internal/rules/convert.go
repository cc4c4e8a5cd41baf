package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/rules/foreign"
)

// formats are those of convert's files.
var formats = []string{"tierflow", "ompi", "ompi-json", "han", "mpich", "mpich-ch4"}

// versions are those of Open MPI known to convert.
var versions = []string{foreign.For4, foreign.For5, foreign.ForMain}

// conversion is the command convert.
type conversion struct {
	from, to, version, output string
	layout                    foreign.Layout
}

func convertCommand() *cobra.Command {
	v := &conversion{}
	c := &cobra.Command{
		Use:   "convert FILE",
		Short: "Read and write the rule files of Open MPI and MPICH",
		Long: `Reads a file of rules, of tierflow or another library, and writes it for another one:

  tierflow   rules as tierflow has them
  ompi       coll_tuned_dynamic_rules_filename, versions 1 and 2
  ompi-json  the same of Open MPI 6
  han        coll_han_dynamic_rules_filename
  mpich      MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE
  mpich-ch4  MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE

What has no counterpart is left to others, and is said line by line on standard error.
Sizes are converted: libraries count different things. Other libraries' files know the
number of ranks only: what is written decides as the rules do for --ranks-per-node.

--for names the Open MPI whose reading counts. Its main branch takes each section of a
classic file for the next smaller numbers of ranks.`,
		Example: `  tierflow rules convert --from ompi dynamic_rules.txt -o my.rules
  tierflow rules convert --to ompi --for 4.1 my.rules -o dynamic_rules.txt
  tierflow rules convert --from ompi --to mpich dynamic_rules.txt`,
		Args: kit.Operand(whichFile),
		RunE: func(c *cobra.Command, args []string) error {
			text, notes, err := v.convert(args[0])
			for _, n := range notes {
				fmt.Fprintf(c.ErrOrStderr(), "%s: %v\n", args[0], n)
			}
			if err != nil {
				return err
			}
			return kit.WriteOutput(c.OutOrStdout(), v.output, []byte(text))
		},
	}
	f := c.Flags()
	f.StringVar(&v.from, "from", "tierflow", "what the file is: "+strings.Join(formats, ", "))
	f.StringVar(&v.to, "to", "tierflow", "what to write")
	f.StringVar(&v.version, "for", foreign.For4, "Open MPI that reads the file: "+strings.Join(versions, ", "))
	f.Int64Var(&v.layout.PerNode, "ranks-per-node", 1, "ranks of a node, for rules that ask about nodes")
	f.StringVarP(&v.output, "output", "o", "", "file to write (default standard output)")
	return c
}

// maxForeign bounds a file of another library, bytes.
const maxForeign = 16 << 20

// convert reads a file and returns its text in the other format.
func (v *conversion) convert(name string) (text string, notes []foreign.Note, err error) {
	for flag, word := range map[string]string{"from": v.from, "to": v.to} {
		if !slices.Contains(formats, word) {
			return "", nil, kit.Usagef("--%s %s: allowed are %s", flag, word, strings.Join(formats, ", "))
		}
	}
	if !slices.Contains(versions, v.version) {
		return "", nil, kit.Usagef("--for %s: allowed are %s", v.version, strings.Join(versions, ", "))
	}
	if v.layout.PerNode < 1 {
		return "", nil, kit.Usagef("--ranks-per-node %d: allowed are 1 and more", v.layout.PerNode)
	}
	most := int64(maxForeign)
	if v.from == "tierflow" {
		most = rules.MaxBytes
	}
	data, err := files.Read(name, most)
	if err != nil {
		return "", nil, err
	}
	b, notes, err := v.read(v.from, name, string(data))
	if err != nil {
		return "", nil, err
	}
	var more []foreign.Note
	switch v.to {
	case "tierflow":
		text = b.Format()
	case "ompi":
		text, more = foreign.WriteClassic(b, v.layout, v.version)
	case "ompi-json":
		text, more, err = foreign.WriteJSON(b, v.layout)
	case "han":
		text, more = foreign.WriteHAN(b, v.layout, v.version)
	default:
		text, more, err = foreign.WriteMPICH(b, v.layout, v.to == "mpich-ch4")
	}
	if v.from != "tierflow" {
		for i := range more {
			more[i].Line = 0 // the lines are of rules nobody sees
		}
	}
	if notes = append(notes, more...); err != nil {
		return "", notes, err
	}
	if back, _, unreadable := v.read(v.to, name, text); decisions(b) > 0 && (unreadable != nil || decisions(back) == 0) {
		err = fmt.Errorf("%s: nothing is left of %d decisions as %s for nodes of %d ranks (--ranks-per-node), and nothing is written", name, decisions(b), v.to, v.layout.PerNode)
		return "", notes, err
	}
	return text, notes, nil
}

// read reads rules of a format.
func (v *conversion) read(format, name, text string) (b *rules.Base, notes []foreign.Note, err error) {
	switch format {
	case "ompi":
		text, notes, err = foreign.ReadClassic(name, text, v.version)
	case "ompi-json":
		text, notes, err = foreign.ReadJSON(name, text)
	case "han":
		text, notes, err = foreign.ReadHAN(name, text)
	case "mpich", "mpich-ch4":
		text, notes, err = foreign.ReadMPICH(name, text)
	}
	if err != nil {
		return nil, nil, err
	}
	b, err = rules.Parse(name, text)
	return b, notes, err
}

// decisions is how many plans rules name.
func decisions(b *rules.Base) (n int) {
	for _, l := range b.Leaves() {
		if !l.Default {
			n++
		}
	}
	return n
}
