package dagtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// spy keeps what Golden says instead of failing this test.
type spy struct {
	testing.TB
	said string
}

func (s *spy) Helper()                   {}
func (s *spy) Errorf(f string, a ...any) { s.said = fmt.Sprintf(f, a...) }
func (s *spy) Fatalf(f string, a ...any) { s.Errorf(f, a...); panic(s) }

func check(t *testing.T, path, got string) (said string) {
	s := &spy{TB: t}
	defer func() {
		if r := recover(); r != nil && r != any(s) {
			panic(r)
		}
		said = s.said
	}()
	Golden(s, path, got)
	return s.said
}

func setUpdate(t *testing.T, to bool) {
	old := *update
	*update = to
	t.Cleanup(func() { *update = old })
}

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "testdata", "x.txt")
	setUpdate(t, false)
	if said := check(t, path, "one\ntwo\n"); !strings.Contains(said, "-update") {
		t.Errorf("missing file: %q does not say how to create it", said)
	}
	*update = true
	Golden(t, path, []byte("one\ntwo\n"))
	*update = false
	if b, err := os.ReadFile(path); err != nil || string(b) != "one\ntwo\n" {
		t.Fatalf("updated file holds %q, %v", b, err)
	}
	if said := check(t, path, "one\ntwo\n"); said != "" {
		t.Errorf("same text: %s", said)
	}
	said := check(t, path, "one\nthree\n")
	for _, want := range []string{"two", "three", "-update", "^TestGolden$"} {
		if !strings.Contains(said, want) {
			t.Errorf("different text: report lacks %q:\n%s", want, said)
		}
	}
}
