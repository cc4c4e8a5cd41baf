package kit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// Something is offered for each word that begins a plan, and the plans among it can be forced.
func TestPlanWords(t *testing.T) {
	prefixes := []string{"", "shape=", "fs=", "w=", "order=", "eager=", "i=adapt/", "ib=nbc/", "bcast:shape=han,", "bcast:w=2;allreduce:shape="}
	for _, s := range all.Submodules() {
		prefixes = append(prefixes, "s="+s.Name()+"/")
	}
	for _, word := range prefixes {
		offered, _ := completions(planWords, word)
		if len(offered) == 0 {
			t.Errorf("%q: nothing is offered", word)
		}
		for _, plan := range offered {
			if strings.ContainsAny(plan[len(plan)-1:], "=/:") {
				continue // there is more to come
			}
			if _, err := choose.ParseForced(plan, "completion", all.Submodules()); err != nil {
				t.Errorf("%q: %q is offered, and is none: %v", word, plan, err)
			}
		}
	}
}

// No word of a list comes twice, and the words before stay.
func TestListWords(t *testing.T) {
	words := listWords([]string{"a", "b", "c"})
	for prefix, want := range map[string]string{"": "a b c", "a": "a b c", "a,": "a,b a,c", "c,a,x": "c,a,b", "a,b,c,": ""} {
		if got := strings.Join(words(prefix), " "); got != want {
			t.Errorf("%q: %q, want %q", prefix, got, want)
		}
	}
	if got := collectiveWords(true)("bcast,"); slices.Contains(got, "all") || slices.Contains(got, "bcast,bcast") || len(got) != len(tasks.Requestable())-1 {
		t.Errorf("behind bcast: %q", got)
	}
}

// Files of JSON and folders are offered, hidden ones when asked for.
func TestJSONFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"m.json", "m.txt", ".hidden.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	at := dir + string(filepath.Separator)
	for prefix, want := range map[string][]string{at: {at + "m.json", at + "more/"}, at + ".": {at + ".hidden.json", at + "m.json", at + "more/"}, filepath.Join(dir, "none", "x"): nil} {
		if got := jsonFiles(prefix); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", prefix, got, want)
		}
	}
}
