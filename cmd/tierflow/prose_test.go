package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/tree"
)

// mostNested is the share of sentences in comments and .md files that may have
// nestedFrom relative pronouns or more. Such a sentence is two sentences, or a table.
const (
	mostNested = 0.005
	nestedFrom = 3
)

// Comments and .md files say one thing a sentence. With -v the test lists the
// sentences that don't.
func TestSentences(t *testing.T) {
	count, nested := 0, []string{}
	walkTree(t, func(name string, read func() []byte) {
		var paragraphs []string
		switch {
		case strings.HasSuffix(name, ".md"):
			paragraphs = tree.MarkdownParagraphs(string(read()))
		case strings.HasSuffix(name, ".go"):
			var err error
			if paragraphs, err = tree.SourceParagraphs(name, read()); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range paragraphs {
			for _, s := range tree.Sentences(p) {
				count++
				if n := tree.Relatives(s); n >= nestedFrom {
					nested = append(nested, fmt.Sprintf("%s: %s", name, s))
				}
			}
		}
	})
	share := float64(len(nested)) / float64(count)
	text := fmt.Sprintf("%d of %d sentences (%.2f%%) have %d or more of that, which, who, what, where:\n%s",
		len(nested), count, 100*share, nestedFrom, strings.Join(nested, "\n"))
	if share > mostNested {
		t.Errorf("%s\nat most %.1f%% may", text, 100*mostNested)
	}
	t.Log(text)
}
