package kit

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/tierflow/tierflow/levels/files"
)

// WriteOutput writes all of data to a file, or to stdout if name is "-" or empty. A
// regular file appears whole or not at all: it is written beside its place and
// renamed. Devices and pipes are written to as they are.
func WriteOutput(stdout io.Writer, name string, data []byte) error {
	if name == "" || name == "-" {
		_, err := stdout.Write(data)
		return err
	}
	return files.Output(name, data, 0o666)
}

// CheckOutput complains if the file of a flag is standard output, taken by the printed numbers,
// or can't be written later because of its folder. It makes nothing. Of the ranks of a launched
// job only one writes, maybe on another machine: nothing is checked there.
func CheckOutput(flag, name string) error {
	if name == "-" {
		return Usagef("--%s -: standard output has the numbers; name a file", flag)
	}
	if name == "" || IsLaunched() {
		return nil
	}
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return Usagef("--%s %s: a directory; name a file in it", flag, name)
	}
	folder := filepath.Dir(name)
	switch info, err = os.Stat(folder); {
	case errors.Is(err, os.ErrNotExist):
		return Usagef("--%s %s: there is no directory %s", flag, name, folder)
	case err == nil && !info.IsDir():
		return Usagef("--%s %s: %s is no directory", flag, name, folder)
	}
	return nil
}

// output is a command's standard output. It keeps its first failure: most of what prints doesn't look.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// end writes what is left, and returns the first failure.
func (o *output) end() error {
	if s, ok := o.Writer.(*screen); ok {
		o.err = cmp.Or(o.err, s.flush())
	}
	return o.err
}
