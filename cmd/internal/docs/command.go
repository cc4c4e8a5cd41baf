// Package docs has the command that shows the guide: its Markdown becomes pages of HTML, which ask for nothing from
// elsewhere. They are served on this machine, or written to a folder.
package docs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
)

// Command returns docs. It shows a guide: the Markdown files of a folder, see [site].
func Command(files fs.FS, folder string) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "docs",
		Short: "Show the guide in a browser",
		Long: `Serves the guide on this machine until it is interrupted, and prints its address:
chapters to read in order, and pages of calls, errors and variables to search. It
needs no network, and nobody on another host can reach it. With --out it writes the
pages to a folder in place of serving them; a browser opens index.html there.`,
		Example: `  tierflow docs --open
  tierflow docs --port 8000
  tierflow docs --out /tmp/tierflow-guide`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			if err := o.check(c.Flags().Changed); err != nil {
				return err
			}
			guide, err := fs.Sub(files, folder)
			if err != nil {
				return err
			}
			pages, err := site(guide)
			if err != nil {
				return err
			}
			if o.out != "" {
				return write(c, o.out, pages)
			}
			return serve(c, o, pages)
		}),
	}
	c.Flags().StringVar(&o.out, "out", "", "write the pages to this folder in place of serving them")
	c.Flags().IntVar(&o.port, "port", 0, "serve at this port (default a free one)")
	c.Flags().BoolVar(&o.open, "open", false, "open the browser, if there is one")
	_ = c.RegisterFlagCompletionFunc("out", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}) // an error means: there is no such flag
	return c
}

// options are the flags of docs.
type options struct {
	out  string
	port int
	open bool
}

// check complains of flags that can't be; changed says which are given.
func (o options) check(changed func(flag string) bool) error {
	switch {
	case changed("out") && (changed("port") || o.open):
		return kit.Usagef("--out writes pages and serves none: leave out --port and --open")
	case changed("out") && o.out == "":
		return kit.Usagef("--out: no name; name a folder")
	case o.port < 0 || o.port > 65535:
		return kit.Usagef("--port %d: no port; they go up to 65535, and 0 is a free one", o.port)
	}
	return nil
}

// write writes the files to a folder, which it makes if need be. Others that are there stay.
func write(c *cobra.Command, folder string, files map[string][]byte) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return kit.Usagef("--out: %w", err)
	}
	for name, data := range files {
		if err := kit.WriteOutput(nil, filepath.Join(folder, name), data); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), filepath.Join(folder, "index.html"))
	return err
}

// policy is what a browser may load for a served page: what lies beside it.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'"

// Bounds of the server. Its readers are on this machine.
const (
	headerTime  = 10 * time.Second // for a request
	requestTime = time.Minute      // for a request and its answer
)

// serve serves the files on loopback until the command's context ends.
func serve(c *cobra.Command, o options, files map[string][]byte) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return kit.Usagef("--port: %w", err)
	}
	address := fmt.Sprintf("http://%v/", l.Addr())
	if _, err := fmt.Fprintln(kit.Raw(c.OutOrStdout()), "serving", address); err != nil {
		l.Close()
		return err
	}
	if o.open {
		if err := browse(address); err != nil {
			fmt.Fprintln(c.ErrOrStderr(), "tierflow docs: no browser opens:", err)
		}
	}
	ctx := c.Context()
	s := &http.Server{Handler: handler(files), ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: requestTime}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Cause(ctx)
}

// handler answers with the files; / is index.html.
func handler(files map[string][]byte) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{name...}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if name == "" {
			name = "index.html"
		}
		data, ok := files[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		w.Header().Set("Content-Security-Policy", policy)
		_, _ = w.Write(data) // a reader gone since needs no answer
	})
	return mux
}

// browse asks the system to open the browser. What opens it goes on by itself.
func browse(address string) error {
	opener := map[string][]string{
		"darwin":  {"open"},
		"windows": {"rundll32", "url.dll,FileProtocolHandler"},
	}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	return exec.Command(opener[0], append(opener[1:], address)...).Start()
}
