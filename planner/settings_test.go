package planner

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/tierflow/tierflow/levels/join/env"
)

// Each option that the environment can give is the program's if the program gives it, and errors name who has given it.
func TestSettings(t *testing.T) {
	for _, text := range texts {
		t.Setenv(text.variable, "by "+text.variable)
	}
	for _, text := range texts {
		if !slices.ContainsFunc(env.All(), func(v env.Variable) bool { return v.Name == text.variable && v.Option == text.option }) {
			t.Errorf("%s for Options.%s is none of levels/join/env", text.variable, text.option)
		}
		s := (*Options)(nil).settings()
		if got, origin := *text.of(&s.Options), s.origin[text.option]; got != "by "+text.variable || origin != text.variable {
			t.Errorf("%s: %q by %s, want the variable's text", text.option, got, origin)
		}
		var o Options
		*text.of(&o) = "the program's"
		s = o.settings()
		if got, origin := *text.of(&s.Options), s.origin[text.option]; got != "the program's" || origin != "Options."+text.option {
			t.Errorf("%s: %q by %s, want the program's", text.option, got, origin)
		}
	}
	in := fstest.MapFS{"name": {Data: []byte("in memory")}}
	file := filepath.Join(t.TempDir(), "name")
	if err := os.WriteFile(file, []byte("on disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(file))
	t.Setenv(env.Table, "name")
	s := (&Options{Rules: "name", Machine: file, Files: in}).settings()
	for option, want := range map[string]struct{ name, text string }{"Rules": {s.Rules, "in memory"}, "Machine": {s.Machine, "on disk"}, "Table": {s.Table, "on disk"}} {
		if got, err := s.read(option, want.name, 100); string(got) != want.text || err != nil {
			t.Errorf("%s %s: %q, %v, want %q", option, want.name, got, err, want.text)
		}
	}
}

// Only managed ranks may be moved, and print what they are in on SIGQUIT unless told otherwise.
func TestManaged(t *testing.T) {
	for _, test := range []struct {
		o                       Options
		variable, dump          string
		managed, prints, goesOn bool
	}{
		{Options{}, "", "", false, false, false},
		{Options{}, "0", "", false, false, false},
		{Options{}, "", "1", false, true, true},
		{Options{DumpOnQuit: true}, "0", "", false, true, true},
		{Options{Managed: true}, "0", "", true, true, false},
		{Options{}, "1", "", true, true, false},
		{Options{}, "1", "0", true, false, false},
		{Options{}, "1", "1", true, true, true},
	} {
		t.Setenv(env.Managed, test.variable)
		t.Setenv(env.Dump, test.dump)
		s := test.o.settings()
		c, err := s.common()
		config, failed := s.processConfig(c.Managed)
		prints, goesOn, wrong := s.dumps(c.Managed)
		if errors.Join(err, failed, wrong) != nil || c.Managed != test.managed || config.Spread != test.managed || prints != test.prints || goesOn != test.goesOn {
			t.Errorf("%+v: managed %v, spread %v, prints %v, goes on %v: %v", test, c.Managed, config.Spread, prints, goesOn, errors.Join(err, failed, wrong))
		}
	}
}
