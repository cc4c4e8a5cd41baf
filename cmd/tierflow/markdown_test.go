package main

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/tierflow/tierflow/submodules/all"
)

// markdown has all .md files of the tree by their names below it.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	walkTree(t, func(name string, read func() []byte) {
		if strings.HasSuffix(name, ".md") {
			texts[name] = string(read())
		}
	})
	return texts
}

// guidePages is the folder of the guide, below the module.
const guidePages = "cmd/tierflow/guide/"

// Relative links lead to files of the tree, and to headings of these. Every picture
// of testdata/readme and of the guide is shown somewhere.
func TestMarkdownLinks(t *testing.T) {
	texts := markdown(t)
	there := map[string]bool{".": true}
	walkTree(t, func(name string, _ func() []byte) {
		for ; !there[name]; name = path.Dir(name) {
			there[name] = true
		}
	})
	linked := map[string]bool{}
	for name, text := range texts {
		for _, link := range markdownLinks(text) {
			file, anchor, _ := strings.Cut(link, "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			linked[target] = true
			if !there[target] {
				t.Errorf("%s links to %s, which is not there", name, link)
			} else if anchor != "" && !slices.Contains(anchors(texts[target]), anchor) {
				t.Errorf("%s links to %s: no such heading; there are %q", name, link, anchors(texts[target]))
			}
		}
	}
	for name := range there {
		if (path.Dir(name) == "testdata/readme" || path.Ext(name) == ".svg" && strings.HasPrefix(name, guidePages)) && !linked[name] {
			t.Errorf("no .md file shows %s", name)
		}
	}
}

var (
	mdLink    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	mdCode    = regexp.MustCompile("`[^`]*`")
	mdHeading = regexp.MustCompile(`^#+ +(.*)$`)
)

func markdownLinks(text string) (links []string) {
	for _, line := range prose(text) {
		for _, m := range mdLink.FindAllStringSubmatch(mdCode.ReplaceAllString(line, "code"), -1) {
			links = append(links, m[1])
		}
	}
	return links
}

// prose is the lines of a .md file, without fenced and indented code.
func prose(text string) (lines []string) {
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

// anchors are what links call a file's headings: small letters and digits, hyphens
// for spaces.
func anchors(text string) (all []string) {
	for _, line := range prose(text) {
		m := mdHeading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, m[1]))
	}
	return all
}

// A Go snippet is a program that compiles, or lines of a file that does.
func TestMarkdownSnippets(t *testing.T) {
	var sources []string
	walkTree(t, func(name string, read func() []byte) {
		if strings.HasSuffix(name, ".go") {
			sources = append(sources, unindented(string(read())))
		}
	})
	for name, text := range markdown(t) {
		for _, snippet := range snippets(text, "go") {
			if strings.HasPrefix(snippet, "package ") {
				vetProgram(t, name, snippet)
				continue
			}
			lines := unindented(snippet)
			if !slices.ContainsFunc(sources, func(s string) bool { return strings.Contains("\n"+s, "\n"+lines) }) {
				t.Errorf("no file that compiles has this snippet of %s:\n%s", name, snippet)
			}
		}
	}
}

// vetProgram complains of a page's program that doesn't compile.
func vetProgram(t *testing.T, page, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput(); err != nil {
		t.Errorf("a program of %s: %v\n%s", page, err, out)
	}
}

// snippets are the blocks of one language.
func snippets(text, language string) (all []string) {
	for _, b := range codeBlocks(text) {
		if b.language == language {
			all = append(all, strings.Join(b.lines, "\n")+"\n")
		}
	}
	return all
}

// unindented removes white space at both ends of each line.
func unindented(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// The command lines in .md files must parse, and the packages that they name must
// be there.
func TestMarkdownCommands(t *testing.T) {
	const run, doc = "go run ./cmd/tierflow ", "go doc ./"
	for name, text := range markdown(t) {
		for line := range strings.Lines(text) {
			if _, rest, ok := strings.Cut(line, run); ok && strings.HasPrefix(line, "    ") {
				args, _, _ := strings.Cut(strings.TrimSpace(rest), "  ")
				checkCommand(t, name, args)
			}
			if _, rest, ok := strings.Cut(line, doc); ok {
				folder := strings.TrimRight(rest[:strings.IndexAny(rest+" ", " `;),\n")], ".")
				if _, err := os.Stat(filepath.Join("..", "..", folder)); err != nil {
					t.Errorf("%s mentions %s%s: %v", name, doc, folder, err)
				}
			}
		}
	}
}

// checkCommand parses a command line of tierflow.
func checkCommand(t *testing.T, where, line string) {
	t.Helper()
	sub, args, err := rootCommand(all.Submodules()).Find(strings.Fields(line))
	if err != nil || !sub.Runnable() || sub.ParseFlags(args) != nil {
		t.Errorf("%s: tierflow %s: no such command, or flags", where, line)
	}
}

// README.md is a map: it points at what there is, and holds no more.
func TestReadmeIsShort(t *testing.T) {
	const most = 150
	if n := strings.Count(readme(t), "\n"); n > most {
		t.Errorf("README.md has %d lines, at most %d may: say it in the guide", n, most)
	}
}

// The test finds dead links, headings and snippets.
func TestMarkdownFound(t *testing.T) {
	const text = "# A b, `c`!\n\n[x](y.md#z) ![p](p.svg) `[no](no)`\n\n    [no](no)\n\n```go\n[no](no)\n```\n"
	if got := markdownLinks(text); !slices.Equal(got, []string{"y.md#z", "p.svg"}) {
		t.Errorf("links are %q", got)
	}
	if got := anchors(text); !slices.Equal(got, []string{"a-b-c"}) {
		t.Errorf("headings are %q", got)
	}
	if got := snippets(text, "go"); !slices.Equal(got, []string{"[no](no)\n"}) {
		t.Errorf("snippets are %q", got)
	}
	if got := slices.Collect(maps.Keys(markdown(t))); !slices.Contains(got, "README.md") || !slices.Contains(got, "testdata/peers/README.md") {
		t.Errorf(".md files are %q", got)
	}
}

// The tests that the guide's page of security names are there.
func TestSecurityTests(t *testing.T) {
	const name = guidePages + "security.md"
	there, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	walkTree(t, func(file string, read func() []byte) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, found := range declared.FindAllSubmatch(read(), -1) {
			there[string(found[1])] = true
		}
	})
	named := regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(markdown(t)[name], -1)
	if len(named) < 20 {
		t.Errorf("%s names %d tests", name, len(named))
	}
	for _, test := range named {
		if !there[test] {
			t.Errorf("%s names %s, which there is not", name, test)
		}
	}
}
