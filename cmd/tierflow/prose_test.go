package main

import (
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// mostNested is the share of sentences in comments and .md files that may have
// nestedFrom relative pronouns or more. Such a sentence is two sentences, or a table.
const (
	mostNested = 0.005
	nestedFrom = 3
)

var (
	pronoun     = regexp.MustCompile(`(?i)\b(that|which|who|whom|whose|what|where|whatever|whichever)\b`)
	sentenceEnd = regexp.MustCompile(`[.!?]["”)]*\s+`)
)

// Comments and .md files say one thing a sentence. With -v the test lists the
// sentences that don't.
func TestSentences(t *testing.T) {
	count, nested := 0, []string{}
	walkTree(t, func(name string, read func() []byte) {
		var paragraphs []string
		switch {
		case strings.HasSuffix(name, ".md"):
			paragraphs = markdownParagraphs(string(read()))
		case strings.HasSuffix(name, ".go"):
			paragraphs = commentParagraphs(t, name, read())
		}
		for _, p := range paragraphs {
			for _, s := range sentences(p) {
				count++
				if n := len(pronoun.FindAllString(s, -1)); n >= nestedFrom {
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

// sentences splits a paragraph; what has one word is none.
func sentences(paragraph string) (all []string) {
	for _, s := range sentenceEnd.Split(strings.Join(strings.Fields(paragraph), " "), -1) {
		if strings.Contains(s, " ") {
			all = append(all, s)
		}
	}
	return all
}

// markdownParagraphs returns the paragraphs, list items and cells of a .md file.
func markdownParagraphs(text string) (all []string) {
	paragraph := ""
	for _, line := range append(prose(text), "") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") {
			all = append(all, paragraph)
			paragraph = ""
		}
		if strings.HasPrefix(line, "|") {
			all = append(all, strings.Split(line, "|")...)
			continue
		}
		paragraph += " " + line
	}
	return append(all, paragraph)
}

// commentParagraphs returns the paragraphs and list items of a file's comments,
// without code.
func commentParagraphs(t *testing.T, name string, src []byte) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var blocks func(list []comment.Block)
	blocks = func(list []comment.Block) {
		for _, b := range list {
			switch b := b.(type) {
			case *comment.Paragraph:
				all = append(all, plainText(b.Text))
			case *comment.List:
				for _, item := range b.Items {
					blocks(item.Content)
				}
			}
		}
	}
	for _, group := range f.Comments {
		blocks(new(comment.Parser).Parse(group.Text()).Content)
	}
	return all
}

// plainText returns text without links and italics.
func plainText(all []comment.Text) string {
	var b strings.Builder
	for _, t := range all {
		switch t := t.(type) {
		case comment.Plain:
			b.WriteString(string(t))
		case comment.Italic:
			b.WriteString(string(t))
		case *comment.Link:
			b.WriteString(plainText(t.Text))
		case *comment.DocLink:
			b.WriteString(plainText(t.Text))
		}
	}
	return b.String()
}
