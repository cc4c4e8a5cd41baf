package docs

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// indexPage is the page that lists the others: its headings of the second level are groups, and its links to pages,
// in their order, are the pages of these.
const indexPage = "README.md"

//go:embed assets
var assets embed.FS

// group is a part of the side bar.
type group struct {
	Title string
	Pages []*page
}

// page is a page of the guide.
type page struct {
	Name     string // of its HTML file
	Title    string // its first heading
	Number   string // of a chapter: its file's name begins with it; empty: it is none
	Heads    []head // of the second level
	Body     template.HTML
	sections []section
}

// head is a heading that the side bar lists below its page.
type head struct{ Anchor, Text string }

// section is what the search finds: the text below a heading, a paragraph that begins with its subject, or a row of a table.
type section struct {
	Page   string `json:"page"`   // its file
	Title  string `json:"title"`  // of the page
	Head   string `json:"head"`   // of the section; empty: the page's beginning
	Anchor string `json:"anchor"` // on the page; empty: its beginning
	Text   string `json:"text"`
}

// site makes the pages of a guide, what they need, and the index of the search, by the names of their files. All are in one
// folder. guide has Markdown files and pictures; README.md lists the pages.
func site(guide fs.FS) (map[string][]byte, error) {
	source, err := fs.ReadFile(guide, indexPage)
	if err != nil {
		return nil, err
	}
	index, err := render(indexPage, source)
	if err != nil {
		return nil, err
	}
	groups, err := contents(guide, source)
	if err != nil {
		return nil, err
	}
	order := []*page{index}
	for _, g := range groups {
		order = append(order, g.Pages...)
	}
	files, err := writePages(groups, order)
	if err != nil {
		return nil, err
	}
	if files["search.js"], err = searchScript(order); err != nil {
		return nil, err
	}
	return files, copyFiles(files, guide)
}

// contents are the pages that the index lists, each once.
func contents(guide fs.FS, index []byte) ([]group, error) {
	var groups []group
	seen := map[string]bool{indexPage: true}
	var failed error
	_ = ast.Walk(parse(index), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, is := n.(*ast.Link)
		name := ""
		if is {
			name, _, _ = strings.Cut(string(link.Destination), "#")
		}
		switch h, heading := n.(*ast.Heading); {
		case !entering || failed != nil:
		case heading && h.Level == 2:
			groups = append(groups, group{Title: plain(h, index)})
		case is && path.Base(name) == name && strings.HasSuffix(name, ".md") && !seen[name] && len(groups) > 0:
			seen[name] = true
			source, err := fs.ReadFile(guide, name)
			if err != nil {
				failed = err
				break
			}
			p, err := render(name, source)
			failed = err
			g := &groups[len(groups)-1]
			g.Pages = append(g.Pages, p)
		}
		return ast.WalkContinue, nil
	})
	all, err := fs.Glob(guide, "*.md")
	for _, name := range all {
		if !seen[name] && err == nil {
			err = fmt.Errorf("%s lists no page %s", indexPage, name)
		}
	}
	if failed == nil {
		failed = err
	}
	return groups, failed
}

// view is what the template shows.
type view struct {
	*page
	Groups         []group
	Previous, Next *page
}

// writePages puts the pages into their frame; each leads to its neighbours in order.
func writePages(groups []group, order []*page) (map[string][]byte, error) {
	frame, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for i, p := range order {
		v := view{page: p, Groups: groups}
		if i > 0 {
			v.Previous = order[i-1]
		}
		if i+1 < len(order) {
			v.Next = order[i+1]
		}
		var b bytes.Buffer
		if err := frame.Execute(&b, v); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		files[p.Name] = b.Bytes()
	}
	return files, nil
}

// searchScript is the script of the search with the index before it: a browser that opens files may not read others.
func searchScript(order []*page) ([]byte, error) {
	var all []section
	for _, p := range order {
		all = append(all, p.sections...)
	}
	index, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	script, err := assets.ReadFile("assets/search.js")
	return fmt.Appendf(nil, "const sections = %s;\n%s", index, script), err
}

// copyFiles adds the style, and the pictures of a guide.
func copyFiles(files map[string][]byte, guide fs.FS) error {
	style, err := assets.ReadFile("assets/style.css")
	if err != nil {
		return err
	}
	files["style.css"] = style
	pictures, err := fs.Glob(guide, "*.svg")
	for _, name := range pictures {
		if files[name], err = fs.ReadFile(guide, name); err != nil {
			return err
		}
	}
	return err
}
