package docs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
)

// guide is a small guide; changes replace its files, an empty one takes it away.
func guide(changes map[string]string) fstest.MapFS {
	files := map[string]string{
		"README.md": "# Guide\n\nSee [x](https://example.org).\n\n## Read\n\n1. [One](1-one.md)\n\n## Look up\n\n- [Two](two.md#b-c), again [One](1-one.md)\n",
		"1-one.md":  "# One\n\n<!-- not run: why -->\n    $ run <a>\n    out\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[up](../../../levels/doc.go#x) ![p](p.svg) <b>no</b>\n",
		"two.md":    "# Two `x`\n\nBegin.\n\n## B, c!\n\n**Bold.** Text &\nmore.\n\n## B, c!\n\n| a | b |\n|---|---|\n| `x.Y` | a row of words, which are a sentence, since there are so many of them that a phone has no room beside each other |\n\nEnd.\n",
		"p.svg":     "<svg/>",
	}
	all := fstest.MapFS{}
	for name, text := range changes {
		files[name] = text
	}
	for name, text := range files {
		if text != "" {
			all["g/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return all
}

// tierflow is a program with docs alone.
func tierflow(changes map[string]string) *cobra.Command {
	return kit.NewRoot("tierflow", "", Command(guide(changes), "g"))
}

// Pages have what Markdown says, links that lead somewhere, and their neighbours; the search finds headings and bold subjects.
func TestPages(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "folder")
	var out, errors strings.Builder
	status := kit.Execute(t.Context(), tierflow(nil), []string{"docs", "--out", folder}, nil, &out, &errors)
	if want := filepath.Join(folder, "index.html") + "\n"; status != 0 || out.String() != want || errors.Len() > 0 {
		t.Fatalf("status %d, output %q, errors %q; want %q", status, &out, &errors, want)
	}
	for name, wants := range map[string][]string{
		"index.html": {"<title>Guide – tierflow</title>", `<a href="https://example.org">`, `<a rel="next" href="1-one.html">`, `<a href="two.html#b-c">`},
		"1-one.html": {
			`<span class="number">1</span> One`, `aria-current="page"`, `<code><span class="prompt">$ </span>run &lt;a&gt;` + "\nout\n</code>",
			`<div class="table"><table>`, `href="https://github.com/tierflow/tierflow/blob/main/levels/doc.go#x"`, `<img src="p.svg"`,
			`<a rel="prev" href="index.html">`, `<a rel="next" href="two.html">`,
		},
		"two.html":  {"<title>Two x – tierflow</title>", `<h2 id="b-c">`, `<h2 id="b-c-1">`, `<li><a href="#b-c">B, c!</a></li>`, `<p id="bold">`, `<tr id="xy">`},
		"search.js": {`{"page":"two.html","title":"Two x","head":"Bold","anchor":"bold","text":"Bold. Text \u0026 more."}`, `"head":"B, c!","anchor":"b-c-1","text":"End."`, `"head":"x.Y","anchor":"xy","text":"x.Y a row of`, "function find"},
		"style.css": {"prefers-color-scheme: dark"},
		"p.svg":     {"<svg/>"},
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q:\n%s", name, want, text)
			}
		}
		if strings.Contains(string(text), "<b>") || strings.Contains(string(text), "not run") {
			t.Errorf("%s has HTML of its page:\n%s", name, text)
		}
	}
}

// A browser that opens a file finds what is asked for, its heading first, and marks it.
func TestSearch(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: no chromium searches the pages")
	}
	folder := t.TempDir()
	if status := kit.Execute(t.Context(), tierflow(nil), []string{"docs", "--out", folder}, nil, io.Discard, io.Discard); status != 0 {
		t.Fatalf("status %d", status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--no-first-run", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"),
		"--dump-dom", "file://"+filepath.Join(folder, "1-one.html")+"?q=MORE+bold")
	cmd.Env, cmd.WaitDelay = append(os.Environ(), "HOME="+t.TempDir()), time.Minute
	text, err := cmd.Output()
	if err != nil {
		t.Skipf("SKIPPED: chromium doesn't run here: %v", err)
	}
	const want = `aria-live="polite"><a href="two.html#bold"><strong>Two x › Bold</strong><p>Text &amp; <mark>more</mark>.</p></a></div>`
	if !strings.Contains(string(text), want) {
		t.Errorf("the page has no %s:\n%s", want, text)
	}
}

// A guide that is not whole is an error.
func TestBrokenGuide(t *testing.T) {
	for file, test := range map[string]struct{ text, want string }{
		"README.md": {"", "README.md"},
		"two.md":    {"", "two.md"},
		"three.md":  {"# Three\n", "README.md lists no page three.md"},
		"1-one.md":  {"text\n", "1-one.md: it begins with no title"},
	} {
		var out, errors strings.Builder
		if status := kit.Execute(t.Context(), tierflow(map[string]string{file: test.text}), []string{"docs", "--out", t.TempDir()}, nil, &out, &errors); status != 1 || !strings.Contains(errors.String(), test.want) {
			t.Errorf("%s is %q: status %d, errors %q; want %q", file, test.text, status, &errors, test.want)
		}
	}
}

// Pages are served on loopback until the command is interrupted; a port that is taken is an error.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said, stdout := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- kit.Execute(ctx, tierflow(nil), []string{"docs"}, nil, stdout, io.Discard)
		stdout.Close()
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if err != nil || !ok || !strings.HasPrefix(address, "http://127.0.0.1:") {
		t.Fatalf("it prints %q, %v", line, err)
	}
	for name, want := range map[string]string{"": "200 text/html; charset=utf-8", "two.html": "200 text/html; charset=utf-8", "p.svg": "200 image/svg+xml", "x": "404 text/plain; charset=utf-8", "../g/two.md": "404 text/plain; charset=utf-8"} {
		answer, err := http.Get(address + name)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("Content-Type")); got != want {
			t.Errorf("%q is answered by %s, want %s", name, got, want)
		}
	}
	port := address[strings.LastIndex(address, ":")+1 : len(address)-1]
	var errors strings.Builder
	if status := kit.Execute(t.Context(), tierflow(nil), []string{"docs", "--port", port}, nil, io.Discard, &errors); status != 2 || !strings.Contains(errors.String(), "--port: listen tcp") {
		t.Errorf("a taken port: status %d, errors %q", status, &errors)
	}
	cancel()
	if got := <-status; got != 1 {
		t.Errorf("status %d when its context has ended", got)
	}
}
