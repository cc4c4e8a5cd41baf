package kit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteOutput(t *testing.T) {
	folder := t.TempDir()
	file, link := filepath.Join(folder, "file"), filepath.Join(folder, "link")
	if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, link, filepath.Join(folder, "new"), os.DevNull} {
		if err := WriteOutput(nil, name, []byte(name)); err != nil {
			t.Error(err)
		}
	}
	if got := textOf(t, file); got != link {
		t.Errorf("%s holds %q, want what was written through the link", file, got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is now %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file's mode is now %v, %v; want that of before", info.Mode(), err)
	}
	var out bytes.Buffer
	for _, name := range []string{"", "-"} {
		if err := WriteOutput(&out, name, []byte("x")); err != nil {
			t.Error(err)
		}
	}
	if out.String() != "xx" {
		t.Errorf("standard output got %q", out.String())
	}
}

// A failure leaves what was there, and nothing beside it.
func TestWriteOutputFails(t *testing.T) {
	folder := t.TempDir()
	if err := WriteOutput(nil, folder, nil); err == nil {
		t.Error("writing to a folder's name succeeds")
	}
	if err := WriteOutput(nil, filepath.Join(folder, "no", "file"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("writing into a missing folder: %v", err)
	}
	full := filepath.Join(folder, "target")
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteOutput(nil, full, []byte("x")); err == nil {
		t.Error("replacing a folder succeeds")
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func textOf(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
