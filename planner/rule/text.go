package rule

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

const preface = `# The rows of the built-in rule

Without a decision table these rows choose a plan. Of each table the first row counts
whose conditions hold. Sizes are those of a rank's buffer, or of all blocks together.
tierflow plan and Explain give the reasons of the rows taken for shape and segments. There
the words in braces are filled in. {piece} is what a node of a ring sends on at once.
`

// Markdown returns the rule as a page of tables: its rows in their order, and why each.
func Markdown() string {
	var b strings.Builder
	b.WriteString(preface)
	section(&b, "Shape", shapes, tasks.Shape.String)
	section(&b, "Segments and window", cuts, func(c cut) string { return fmt.Sprintf("fs=%s%s, w=%d", c.text, c.unit, c.window) })
	section(&b, "Algorithm of an operation", algorithms, tasks.Choice.String)
	return b.String()
}

func section[T any](b *strings.Builder, title string, rows []row[T], choose func(T) string) {
	fmt.Fprintf(b, "\n## %s\n\n| when | choose | because |\n|---|---|---|\n", title)
	for _, r := range rows {
		texts := make([]string, len(r.when))
		for i, c := range r.when {
			texts[i] = c.text
		}
		if len(texts) == 0 {
			texts = []string{"otherwise"}
		}
		fmt.Fprintf(b, "| %s | `%s` | %s |\n", strings.Join(texts, "; "), choose(r.choose), r.because)
	}
}
