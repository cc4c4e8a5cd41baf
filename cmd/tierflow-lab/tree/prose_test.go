package tree

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSentences(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		"One":                           nil,
		"Two words. And three more.":    {"Two words", "And three more."},
		"Is it? Yes! It is (so.) Done.": {"Is it", "It is (so"},
		"It ends “here.” And goes on":   {"It ends “here", "And goes on"},
		"broken\n over   lines":         {"broken over lines"},
		"e.g.this is 3.5 one":           {"e.g.this is 3.5 one"},
	} {
		if diff := cmp.Diff(want, Sentences(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestRelatives(t *testing.T) {
	for text, want := range map[string]int{
		"":                                    0,
		"That which stands where it stood":    3,
		"Whatever is somewhere, or thatched":  1,
		"who's there, and whose is it, whom?": 3,
	} {
		if got := Relatives(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// Code and fences are no prose. Cells, items and headings are paragraphs of their own.
func TestMarkdown(t *testing.T) {
	const page = "# Title\n\nSome text\nover lines.\n\n- an item\n- another\n  one\n\n| a cell | of two |\n\n    code line\n\n```\nfenced\n```\n\nThe end.\n"
	if prose := strings.Join(Prose(page), "\n"); strings.Contains(prose, "code line") || strings.Contains(prose, "fenced") || !strings.Contains(prose, "The end.") {
		t.Errorf("prose\n%s", prose)
	}
	var got []string
	for _, p := range MarkdownParagraphs(page) {
		if p = strings.TrimSpace(p); p != "" {
			got = append(got, p)
		}
	}
	if diff := cmp.Diff([]string{"# Title", "Some text over lines.", "- an item", "- another one", "a cell", "of two", "The end."}, got); diff != "" {
		t.Error(diff)
	}
}

// Comments' code is no prose, links are their texts, and what is no Go is an error.
func TestSourceParagraphs(t *testing.T) {
	const source = "// Package p has a [link] to [Other].\n//\n//\tcode here\n//\n// These are a list:\n//   - an item\n//   - another\npackage p\n\n// [link]: https://example.org\nvar x int // at the end\n"
	got, err := SourceParagraphs("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"an item", "another", "at the end"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if all := strings.Join(got, "\n"); strings.Contains(all, "code here") || !strings.HasPrefix(all, "Package p has a ") {
		t.Errorf("%q", got)
	}
	if _, err := SourceParagraphs("p.go", []byte("no Go")); err == nil {
		t.Error("what is no Go is read")
	}
}

// No fewer arrows go back up than in the best order of all, at least one for each pair, and no more than
// half: an order or its reverse has so few.
func TestBackUpIsPossible(t *testing.T) {
	files := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		uses := Uses{}
		for range rapid.IntRange(0, 10).Draw(t, "arrows") {
			from, to := rapid.SampledFrom(files).Draw(t, "from"), rapid.SampledFrom(files).Draw(t, "to")
			if from != to {
				uses[[2]string{from, to}] = "name"
			}
		}
		best := len(uses)
		for _, order := range orders(files) {
			best = min(best, uses.against(order))
		}
		if got := uses.BackUp(); got < best || got < len(uses.Pairs()) || got > len(uses)/2 {
			t.Fatalf("%v: %d back up, the best of all orders has %d", uses, got, best)
		}
	})
}

// orders returns all permutations.
func orders(files []string) (all [][]string) {
	if len(files) == 0 {
		return [][]string{nil}
	}
	for i, first := range files {
		for _, rest := range orders(slices.Delete(slices.Clone(files), i, i+1)) {
			all = append(all, append([]string{first}, rest...))
		}
	}
	return all
}
