package submodules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// TestCatalogue: names are unique; what each submodule says of itself is the
// conformance suite's matter.
func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range all.Submodules() {
		if seen[s.Name()] {
			t.Errorf("two submodules are called %q", s.Name())
		}
		seen[s.Name()] = true
		if found, err := all.Submodules().Find(s.Name()); err != nil || found.Name() != s.Name() {
			t.Errorf("Find(%q) = %v, %v", s.Name(), found, err)
		}
	}
	_, err := all.Submodules().Find("libnbc")
	if want := `unknown submodule "libnbc"; known are adapt, nbc, circulant, sm, solo`; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestRestrictionTexts(t *testing.T) {
	if got := submodules.NeedsRootFirst.String(); got == "" || strings.HasPrefix(got, "Restriction(") {
		t.Errorf("NeedsRootFirst has no words: %q", got)
	}
	if next := (submodules.NeedsDense + 1).String(); next != "Restriction(7)" {
		t.Errorf("a restriction that this test doesn't know: %q", next)
	}
}

func TestCheck(t *testing.T) {
	reg := append(all.Submodules(), plain(nil))
	for _, tc := range []struct{ plan, want string }{
		{"", ""},
		{"shape=han,fs=1,w=2,i=adapt/chain/32KiB,s=sm,ib=scripted", ""},
		{"i=adapt//32KiB", ""},
		{"i=adapt,sb=xhc", `sb=xhc: unknown submodule "xhc"; known are adapt, nbc, circulant, sm, solo, scripted`},
		{"i=nbc/bruck//4", ""},
		{"i=nbc/linear//4", "i=nbc/linear//4: nbc/linear takes no number"},
		{"i=adapt/star", `i=adapt/star: unknown algorithm "star"; adapt has binomial, chain, kchain, binary, linear, ring, direct, pairwise, inorderbinary, inorderbinomial, splitbinary`},
		{"i=scripted/plain/1K", "i=scripted/plain/1KiB: scripted/plain takes no inner segment"},
		{"i=scripted//1K", "i=scripted//1KiB: scripted/plain takes no inner segment"},
	} {
		p := tasktest.Plan(t, tc.plan)
		got := ""
		if err := reg.Check(p); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("plan %q: got %q, want %q", tc.plan, got, tc.want)
		}
	}
}

func TestPieces(t *testing.T) {
	for _, tc := range []struct {
		inner, n int64
		want     string
	}{
		{0, 10, "0+10"},
		{4, 10, "0+4 4+4 8+2"},
		{5, 10, "0+5 5+5"},
		{10, 10, "0+10"},
		{tasks.Whole, 10, "0+10"},
		{0, 0, "0+0"},
		{4, 0, "0+0"},
	} {
		c := submodules.Call{Inner: tc.inner, Task: tasks.Task{Dst: tasks.Span{Region: tasks.Recv, Off: 100, Len: tc.n}}}
		var got []string
		for off, n := range c.Pieces() {
			got = append(got, fmt.Sprintf("%d+%d", off, n))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%d bytes in pieces of %d: got %v, want %s", tc.n, tc.inner, got, tc.want)
		}
	}
}

// The places of an alltoall's messages are those of its pieces, one after the other, wherever messages are cut.
func TestPlaces(t *testing.T) {
	near, far := tasks.Span{Region: tasks.Recv, Off: 100, Len: 3}, tasks.Span{Region: tasks.Recv, Off: 200, Len: 9}
	for inner, want := range map[int64]string{
		0: "[[recv[100:103] recv[200:209]]]",
		2: "[[recv[100:102]] [recv[102:103] recv[200:201]] [recv[201:203]] [recv[203:205]] [recv[205:207]] [recv[207:209]]]",
		8: "[[recv[100:103] recv[200:205]] [recv[205:209]]]",
	} {
		c := submodules.Call{Inner: inner, In: [][]tasks.Span{{near, far}}}
		if got := fmt.Sprint(c.Places(0)); got != want {
			t.Errorf("cut after %d bytes: %s, want %s", inner, got, want)
		}
	}
}

func TestGrowth(t *testing.T) {
	for n, want := range map[int][5]int{1: {0, 0, 0, 0, 0}, 2: {1, 2, 1, 2, 1}, 5: {3, 6, 4, 8, 2}, 8: {3, 6, 7, 14, 4}} {
		for i, g := range []submodules.Growth{submodules.Doublings, submodules.TwiceDoublings, submodules.Others, submodules.TwiceOthers, submodules.Half} {
			if got := g.Of(n); got != want[i] {
				t.Errorf("%v of %d ranks: %d, want %d", g, n, got, want[i])
			}
		}
	}
}

func TestPart(t *testing.T) {
	own, there, others := []tasks.Span{{Len: 1}}, []tasks.Span{{Len: 2}}, []tasks.Span{{Len: 3}}
	c := submodules.Call{Me: 1, Held: own, Parts: [][]tasks.Span{others, there}}
	if got := fmt.Sprint(c.Part(0), c.Part(1)); got != fmt.Sprint(others, own) {
		t.Errorf("%s, want %v %v", got, others, own)
	}
}

func TestOthers(t *testing.T) {
	c := submodules.Call{Me: 1, Task: tasks.Task{Group: &levels.Group{Ranks: []levels.Rank{3, 5, 8, 9}}}}
	var got []string
	for i, r := range c.Others() {
		if got = append(got, fmt.Sprintf("%d:r%d", i, r)); r == 8 {
			break // the iterator must stop here
		}
	}
	if want := "0:r3 2:r8"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestOffers(t *testing.T) {
	const links = "adapt/binomial, adapt/chain, adapt/kchain, adapt/binary, adapt/linear, adapt/inorderbinary, adapt/inorderbinomial, " +
		"nbc/binomial, nbc/linear, nbc/chain, nbc/rabenseifner, circulant/blocks"
	for shared, want := range map[bool]string{
		false: links,
		true:  links + ", sm/slots, sm/rings, solo/linear, solo/slices",
	} {
		if got := all.Submodules().Offers(tasks.Reduce, shared); got != want {
			t.Errorf("shared %v: got %s, want %s", shared, got, want)
		}
	}
	if got := all.Submodules().Offers(tasks.Barrier, true); got != "none" {
		t.Errorf("a barrier is never a task, got %s", got)
	}
}
