package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

// Each page of the guide has a title, links that lead to what is there, and a place in the search.
func TestDocs(t *testing.T) {
	folder := t.TempDir()
	tierflow.Succeeds(t, "docs", "--out", folder)
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	there, texts := map[string]bool{}, map[string]string{}
	for _, f := range files {
		name := f.Name()
		there[name] = true
		if filepath.Ext(name) == ".html" {
			texts[name] = kittest.Contents(t, filepath.Join(folder, name))
			for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(texts[name], -1) {
				if there[name+"#"+id[1]] {
					t.Errorf("%s has two places %s", name, id[1])
				}
				there[name+"#"+id[1]] = true
			}
		}
	}
	var sections []struct{ Page, Title, Anchor, Text string }
	if err := json.Unmarshal([]byte(kittest.Between(t, kittest.Contents(t, filepath.Join(folder, "search.js")), "const sections = ", ";\n")), &sections); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, s := range sections {
		found[s.Page] += s.Text
		if place := s.Page + "#" + s.Anchor; s.Title == "" || !there[strings.TrimSuffix(place, "#")] {
			t.Errorf("the search leads to %q, titled %q, which is not there", place, s.Title)
		}
	}
	links := 0
	for name, text := range texts {
		if title := kittest.Between(t, text, "<title>", "</title>"); title == " – tierflow" {
			t.Errorf("%s has no title", name)
		}
		if len(found[name]) < 200 {
			t.Errorf("the search knows of %s only %q", name, found[name])
		}
		for _, m := range regexp.MustCompile(` (?:href|src)="([^"]+)"`).FindAllStringSubmatch(text, -1) {
			link := m[1]
			if strings.HasPrefix(link, "#") {
				link = name + link
			}
			switch abroad, ok := strings.CutPrefix(link, "https://github.com/tierflow/tierflow/blob/main/"); {
			case ok:
				abroad, _, _ = strings.Cut(abroad, "#")
				if _, err := os.Stat(filepath.Join("..", "..", abroad)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case strings.Contains(link, "://"):
			case !there[link]:
				t.Errorf("%s links to %s, which is not there", name, link)
			default:
				links++
			}
		}
	}
	if pages, _ := filepath.Glob("guide/*.md"); len(texts) != len(pages) || links < 20*len(pages) {
		t.Errorf("%d pages of HTML from %d, with %d links", len(texts), len(pages), links)
	}
}
