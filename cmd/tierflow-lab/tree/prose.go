package tree

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

var (
	pronoun     = regexp.MustCompile(`(?i)\b(that|which|who|whom|whose|what|where|whatever|whichever)\b`)
	sentenceEnd = regexp.MustCompile(`[.!?]["”)]*\s+`)
)

// Relatives counts the relative pronouns of a sentence.
func Relatives(sentence string) int { return len(pronoun.FindAllString(sentence, -1)) }

// Sentences splits a paragraph; a single word is no sentence.
func Sentences(paragraph string) (all []string) {
	for _, s := range sentenceEnd.Split(strings.Join(strings.Fields(paragraph), " "), -1) {
		if strings.Contains(s, " ") {
			all = append(all, s)
		}
	}
	return all
}

// Prose returns the lines of a .md file, without fenced and indented code.
func Prose(text string) (lines []string) {
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		} else if !fenced && !strings.HasPrefix(line, "    ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// MarkdownParagraphs returns the paragraphs, list items and cells of a .md file.
func MarkdownParagraphs(text string) (all []string) {
	paragraph := ""
	for _, line := range append(Prose(text), "") {
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

// SourceParagraphs returns the paragraphs and list items of the comments of a Go file,
// without code.
func SourceParagraphs(name string, src []byte) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return commentParagraphs(f), nil
}

func commentParagraphs(f *ast.File) (all []string) {
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
