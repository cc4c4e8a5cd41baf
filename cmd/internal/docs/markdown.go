package docs

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Where links lead that leave the guide: to the files of the repository, seen from the guide's folder.
const (
	repository  = "https://github.com/tierflow/tierflow/blob/main"
	guideFolder = "/cmd/tierflow/guide"
)

// markdown reads pages as GitHub does: with tables.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(codeRenderer{}, 100))),
)

// parse reads a page.
func parse(source []byte) ast.Node {
	return markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
}

// render makes HTML of a page.
func render(name string, source []byte) (*page, error) {
	p := &page{Name: htmlName(name)}
	if number, _, ok := strings.Cut(name, "-"); ok {
		if _, err := strconv.Atoi(number); err == nil {
			p.Number = number
		}
	}
	doc := parse(source)
	removeComments(doc)
	if err := p.outline(doc, source); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				n.Destination = []byte(target(string(n.Destination)))
			}
		case *tables.Table:
			if hasProse(n, source) {
				n.SetAttributeString("class", []byte("prose"))
			}
		}
		return ast.WalkContinue, nil
	})
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	framed := strings.NewReplacer("<table", `<div class="table"><table`, "</table>", "</table></div>").Replace(b.String())
	p.Body = template.HTML(framed) // no HTML of a page passes the renderer
	return p, nil
}

// htmlName is the name of a page's HTML file.
func htmlName(name string) string {
	if name == indexPage {
		return "index.html"
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}

// target is where a link of a page leads in the HTML.
func target(link string) string {
	file, anchor, _ := strings.Cut(link, "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	switch {
	case file == "" || strings.Contains(file, "://"):
		return link
	case path.Base(file) == file && strings.HasSuffix(file, ".md"):
		return htmlName(file) + anchor
	}
	return repository + path.Join(guideFolder, file) + anchor
}

// hasProse reports whether a table's cells are sentences: a narrow screen shows them below each other.
func hasProse(t *tables.Table, source []byte) bool {
	const most = 24 // characters of a cell, on average
	cells := 0
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		cells += row.ChildCount()
	}
	return len(plain(t, source)) > most*cells
}

// removeComments takes comments out, which tell tests what not to run.
func removeComments(doc ast.Node) {
	for n := doc.FirstChild(); n != nil; {
		next := n.NextSibling()
		if n.Kind() == ast.KindHTMLBlock {
			doc.RemoveChild(doc, n)
		}
		n = next
	}
}

// outline fills in title, headings and sections. Sections are also the paragraphs that begin with a bold subject, and the rows
// of tables of sentences. They get anchors.
func (p *page) outline(doc ast.Node, source []byte) error {
	ids := anchors{}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			ids[anchorOf(h)] = true
		}
	}
	current := 0 // the section that text belongs to
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		said := plain(n, source)
		switch h, heading := n.(*ast.Heading); {
		case heading && h.Level == 1:
			p.Title = said
			current = p.add("", "", "")
			continue
		case p.Title == "":
			return fmt.Errorf("it begins with no title")
		case heading:
			if h.Level == 2 {
				p.Heads = append(p.Heads, head{anchorOf(h), said})
			}
			current = p.add(said, anchorOf(h), "")
			continue
		}
		if t, ok := n.(*tables.Table); ok && hasProse(t, source) {
			p.addRows(t, source, ids)
			continue
		}
		if subject := subjectOf(n, source); subject != "" {
			id := ids.Generate([]byte(subject), ast.KindParagraph)
			n.SetAttributeString("id", id)
			current = p.add(strings.TrimRight(subject, ".,"), string(id), "")
		}
		text := &p.sections[current].Text
		*text = strings.TrimSpace(*text + " " + said)
	}
	if p.Title == "" {
		return fmt.Errorf("it has no title")
	}
	return nil
}

// add adds a section, and returns its index.
func (p *page) add(head, anchor, text string) int {
	p.sections = append(p.sections, section{Page: p.Name, Title: p.Title, Head: head, Anchor: anchor, Text: text})
	return len(p.sections) - 1
}

// addRows makes each row of a table a section with an anchor. Its first cell is the subject.
func (p *page) addRows(t *tables.Table, source []byte, ids anchors) {
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		if row.Kind() != tables.KindTableRow {
			continue
		}
		subject := plain(row.FirstChild(), source)
		id := ids.Generate([]byte(subject), row.Kind())
		row.SetAttributeString("id", id)
		p.add(subject, string(id), plain(row, source))
	}
}

// anchorOf is the anchor of a heading.
func anchorOf(h *ast.Heading) string {
	id, _ := h.AttributeString("id")
	b, _ := id.([]byte)
	return string(b)
}

// subjectOf is the bold text that a paragraph begins with.
func subjectOf(n ast.Node, source []byte) string {
	if n.Kind() != ast.KindParagraph {
		return ""
	}
	if e, ok := n.FirstChild().(*ast.Emphasis); ok && e.Level == 2 {
		return plain(e, source)
	}
	return ""
}

// plain is the text of a node and those below it, with single blanks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			b.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(html.UnescapeString(b.String())), " ")
}

// anchors makes the anchors that GitHub makes: small letters and digits, hyphens for spaces. It has those of a page.
type anchors map[string]bool

// Generate returns the anchor of a heading, with a number behind it if there was the same before.
func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(string(value)))
	free := id
	for n := 1; a[free]; n++ {
		free = id + "-" + strconv.Itoa(n)
	}
	a[free] = true
	return []byte(free)
}

// Put notes an anchor that a page gives by itself.
func (a anchors) Put(value []byte) { a[string(value)] = true }

// codeRenderer writes blocks of code. A reader who selects commands gets them without their prompts.
type codeRenderer struct{}

// RegisterFuncs has the two kinds of blocks.
func (c codeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindCodeBlock, c.render)
	r.Register(ast.KindFencedCodeBlock, c.render)
}

func (codeRenderer) render(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<pre tabindex="0"><code>`) // reachable by keys, which scroll it
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		said := string(line.Value(source))
		if command, ok := strings.CutPrefix(said, "$ "); ok {
			_, _ = w.WriteString(`<span class="prompt">$ </span>`)
			said = command
		}
		_, _ = w.WriteString(html.EscapeString(said))
	}
	_, _ = w.WriteString("</code></pre>\n") // the writer keeps its first error
	return ast.WalkSkipChildren, nil
}
