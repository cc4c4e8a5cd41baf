// Package files reads files whole, but never more than a bound, and writes them whole or not at all. Every
// file whose name a user gives is read by it: a device or a stream without end is an error, and doesn't take
// all memory. It knows no format.
//
//	data, err := files.Read(name, 1<<20)
//	err = files.Write(name, data, 0o600)
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Read returns the contents of a file, which may be a pipe or a device. More than most bytes are a
// [SizeError], which comes before one byte more than that is read.
func Read(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return readAll(f, name, most)
}

// ReadIn is [Read] of a file that fsys has, or else of the file system's. Names are those of [fs.ValidPath] in fsys.
func ReadIn(fsys fs.FS, name string, most int64) ([]byte, error) {
	if fsys == nil || !fs.ValidPath(name) {
		return Read(name, most)
	}
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Read(name, most)
	}
	if err != nil {
		return nil, err
	}
	return readAll(f, name, most)
}

// readAll reads and closes a file.
func readAll(f fs.File, name string, most int64) ([]byte, error) {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if n := info.Size(); info.Mode().IsRegular() && n > most {
		return nil, &fs.PathError{Op: "read", Path: name, Err: &SizeError{Size: n, Most: most}}
	}
	b := bytes.NewBuffer(make([]byte, 0, min(max(info.Size(), 0), most)+bytes.MinRead))
	if _, err = b.ReadFrom(Limit(f, name, most)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Limit returns a reader of what is left in r, called name, that fails with a [SizeError] behind most bytes.
func Limit(r io.Reader, name string, most int64) io.Reader {
	return &limited{r, name, most, most}
}

// limited is a reader of at most left bytes more.
type limited struct {
	r          io.Reader
	name       string
	left, most int64
}

func (l *limited) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), max(l.left, 0)+1)]
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n - 1, &fs.PathError{Op: "read", Path: l.name, Err: &SizeError{Most: l.most}}
	}
	return n, err
}

// SizeError tells that a file is larger than allowed.
type SizeError struct {
	Size int64 // bytes; 0: unknown, the file is no regular one or grows
	Most int64 // allowed, bytes
}

// Error says both.
func (e *SizeError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("more than %d bytes; allowed are %d", e.Most, e.Most)
	}
	return fmt.Sprintf("%d bytes; allowed are %d", e.Size, e.Most)
}

// Write writes a file with mode, less the process's umask. It appears whole or not at all: data goes into a
// new file beside it, which then takes its name. A symbolic link of that name is replaced, not followed, so
// is an older file. After an error nothing new is left.
func Write(name string, data []byte, mode fs.FileMode) error {
	return WriteBy(name, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Output is [Write] of a file that a user names. It follows symbolic links, leaves an older file its mode, and
// writes into devices and pipes as they are.
func Output(name string, data []byte, mode fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real // a link stays one
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return Write(name, data, mode) // there is none; else this says what is wrong
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name a file in it", name)
	case info.Mode().IsRegular():
		return Write(name, data, info.Mode().Perm())
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// WriteBy is [Write] of what a function writes.
func WriteBy(name string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := createNew(name, mode)
	if err != nil {
		return callIt(name, err)
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error is why it is not wanted
		return callIt(name, err)
	}
	return nil
}

// callIt puts the file's name in the place of the new file's, which nobody knows.
func callIt(name string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	} else if l, ok := errors.AsType[*os.LinkError](err); ok {
		err = l.Err
	} else {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return &fs.PathError{Op: "write", Path: name, Err: err}
}

// Create makes an empty file with mode, less the process's umask, in the place of an older file or symbolic
// link, and opens it for writing. What somebody puts there meanwhile is an error, and not written to.
func Create(name string, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && !info.IsDir() {
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

// tries bounds how many names createNew tries.
const tries = 100

// createNew makes a file beside name. Nothing with its name was there, not even a link.
func createNew(name string, mode fs.FileMode) (f *os.File, err error) {
	for range tries {
		other := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%08x.tmp", filepath.Base(name), rand.Uint32()))
		f, err = os.OpenFile(other, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, err
}
