package verify

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// repeatCommand returns the command that checks a case.
func repeatCommand(c casegen.Case) string {
	args := []string{"tierflow", "verify", c.Request.Coll.String(), "--topo", topoArgument(c.Topology)}
	if r := c.Request; r.Coll != tasks.Barrier {
		switch {
		case !r.Matrix.IsZero():
			args = append(args, "--counts", matrixArgument(r.Matrix))
		case r.Counts.Len() > 0:
			args = append(args, "--counts", countsArgument(r.Counts.Len(), r.Counts.At))
		default:
			args = append(args, "--bytes", tasks.FormatBytes(r.Bytes()))
		}
		args = append(args, "--dtype", r.Type.String())
		if r.Rooted() {
			args = append(args, "--root", fmt.Sprint(r.Root))
		}
		if r.Reduces() || r.Blocks() {
			args = append(args, fmt.Sprintf("--in-place=%v", r.InPlace))
		}
		if r.Reduces() {
			args = append(args, fmt.Sprintf("--non-commutative=%v", !r.Op.Commutative()))
		}
	}
	args = append(args, "--plan", c.Plan.String(), "--max-ranks", fmt.Sprint(c.Topology.Size()))
	for i, a := range args {
		args[i] = quoteArgument(a)
	}
	return strings.Join(args, " ")
}

// countsArgument returns n counts as --counts reads them.
func countsArgument(n int, at func(i int) int64) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(at(i))
	}
	return strings.Join(list, ",")
}

// matrixArgument returns m as --counts reads it.
func matrixArgument(m tasks.Matrix) string {
	rows := make([]string, m.Len())
	for from := range rows {
		rows[from] = countsArgument(m.Len(), func(to int) int64 { return m.At(from, to) })
	}
	return strings.Join(rows, ";")
}

// quoteArgument protects what a shell would change.
func quoteArgument(s string) string {
	if !strings.ContainsAny(s, " {}[]\"'$*?;&|<>()") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// topoArgument returns t as --topo reads it: as a spec if there is one, else as JSON.
func topoArgument(t *levels.Topology) string {
	if spec := t.String(); !strings.Contains(spec, " ") {
		return spec
	}
	return topologyJSON(t)
}

// topologyJSON returns t in the form of a topology file.
func topologyJSON(t *levels.Topology) string {
	type level struct {
		Name   string `json:"name"`
		Symbol string `json:"symbol"`
	}
	var file struct {
		Levels []level    `json:"levels"`
		Ranks  [][]string `json:"ranks"`
	}
	for k := range t.Depth() {
		l := t.Level(k)
		file.Levels = append(file.Levels, level{l.Name, string(rune(l.Symbol))})
	}
	for r := range levels.Rank(t.Size()) {
		row := []string{}
		for k := range t.Depth() - 1 {
			row = append(row, t.DomainName(r, k))
		}
		file.Ranks = append(file.Ranks, row)
	}
	text, err := json.Marshal(file)
	if err != nil {
		panic(fmt.Sprintf("topology %v can't be JSON: %v", t, err))
	}
	return string(text)
}
