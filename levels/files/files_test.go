package files_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/files"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := files.Read(name, 8); err != nil || string(data) != "12345678" {
		t.Errorf("8 of 8 bytes: %q, %v", data, err)
	}
	for _, test := range []struct {
		name, want string
	}{
		{name, "read " + name + ": 8 bytes; allowed are 7"},
		{filepath.Join(dir, "none"), "no such file"},
		{dir, "is a directory"},
	} {
		if data, err := files.Read(test.name, 7); data != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q, %v; want %s", data, err, test.want)
		}
	}
}

// A stream without end is an error. One that ends at the bound is none.
func TestReadStream(t *testing.T) {
	const zero = "/dev/zero"
	if _, err := os.Stat(zero); err != nil {
		t.Skip(err)
	}
	_, err := files.Read(zero, 1<<20)
	if size, ok := errors.AsType[*files.SizeError](err); !ok || size.Most != 1<<20 {
		t.Errorf("%v, want a SizeError", err)
	}
	if got, want := err.Error(), "read /dev/zero: more than 1048576 bytes; allowed are 1048576"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if data, err := files.Read(os.DevNull, 0); len(data) != 0 || err != nil {
		t.Errorf("nothing: %q, %v", data, err)
	}
	for most, ends := range map[int64]bool{4: true, 3: false, 0: false} {
		data, err := io.ReadAll(files.Limit(strings.NewReader("1234"), "x", most))
		if want := "1234"[:most]; string(data) != want || (err == nil) != ends {
			t.Errorf("%d bytes of 4: %q, %v", most, data, err)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name, other := filepath.Join(dir, "f"), filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", name); err != nil {
		t.Skip(err)
	}
	for range 2 {
		if err := files.Write(name, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if theirs, err := os.ReadFile(other); err != nil || string(theirs) != "theirs" {
		t.Errorf("the link's target holds %q, %v", theirs, err)
	}
	if info, err := os.Lstat(name); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v; want a regular file of mode 0600", info.Mode(), err)
	}
	wantNames(t, dir, "f", "other")
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	name, other := filepath.Join(dir, "f"), filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", name); err != nil {
		t.Skip(err)
	}
	for range 2 {
		f, err := files.Create(name, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("mine"); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{name: "mine", other: "theirs"} {
		if data, err := os.ReadFile(name); err != nil || string(data) != want {
			t.Errorf("%s holds %q, %v; want %s", name, data, err, want)
		}
	}
	if _, err := files.Create(dir, 0o600); err == nil {
		t.Error("a folder gave way")
	}
	wantNames(t, dir, "f", "other")
}

// What can't be written whole leaves what was there, and nothing beside it.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := files.Write(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := &fs.PathError{Op: "write", Path: "temporary", Err: errors.New("no space left")}
	err := files.WriteBy(name, 0o600, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return full
	})
	if err == nil || err.Error() != "write "+name+": no space left" {
		t.Errorf("%v", err)
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "old" {
		t.Errorf("%q, %v; want what was there", data, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"folder", "none/f"} {
		if err := files.Write(filepath.Join(dir, name), []byte("x"), 0o600); err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantNames(t, dir, "f", "folder")
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the folder has %q, %v; want %q", got, err, want)
	}
}
