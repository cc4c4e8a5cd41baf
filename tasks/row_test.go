package tasks

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels"
)

// Every row says all there is to say, and nothing that contradicts itself.
func TestRowsAreComplete(t *testing.T) {
	words := map[string]Collective{}
	for _, c := range Collectives() {
		row := c.Row()
		complaints := complaintsAbout(row)
		for _, word := range []string{row.Name, row.Suffix} {
			if other, seen := words[word]; seen && word != "" {
				complaints = append(complaints, "shares a word with "+other.String())
			}
			words[word] = c
		}
		if len(complaints) > 0 {
			t.Errorf("%v %s", c, strings.Join(complaints, "; "))
		}
	}
	if got := (Row{}); !cmp.Equal(Collective(len(rows)).Row(), got) || !cmp.Equal(Collective(0).Row(), got) {
		t.Error("what is no collective has a row")
	}
}

// complaintsAbout lists what is missing from a row, or can't be.
func complaintsAbout(row Row) (all []string) {
	expect := func(holds bool, complaint string) {
		if !holds {
			all = append(all, complaint)
		}
	}
	expect(row.Name != "" && row.Name == strings.ToLower(row.Name), "needs a name in lower case")
	expect(row.Doc != "" && !strings.HasSuffix(row.Doc, "."), "needs a line of doc")
	for _, text := range []string{row.Input.String(), row.Output.String(), row.From.String(), row.Placement.String()} {
		expect(text != "" && !strings.Contains(text, "?"), "lacks or has a wrong "+text)
	}
	data := row.Output.Content != Nothing
	expect(data == (row.Input.Content != Nothing), "puts in nothing, or gets nothing out")
	expect(data == (row.From != NoSource), "has data without a source")
	expect(data == (row.Values > 0), "has data and no values")
	expect(!row.Counts || row.takesBlocks() || row.givesBlocks(), "has counts and no blocks")
	expect(row.From != RootsData || row.Input.Holders == TheRoot, "copies the data of a root that is not alone to put in any")
	expect(row.From != OwnersData || row.givesBlocks(), "says whose blocks come out, and none do")
	expect(row.Placement != InSend || row.Input.Holders == TheRoot && row.takesBlocks(), "leaves its result in a send buffer that has no place for it")
	expect(row.Recipe.Top != nil || row.Suffix != "", "is neither a request nor a task")
	expect(row.Recipe.Top != nil || row.Shapes == nil, "has shapes without the common ones")
	for s, special := range row.Shapes {
		expect(!shapes[s].common && s != 0 && special.Top != nil, "has a wrong recipe for shape "+s.String())
	}
	return all
}

// The operations of all recipes have names.
func TestRecipesNameTasks(t *testing.T) {
	for _, c := range Requestable() {
		for _, s := range ShapesOf(c) {
			for _, op := range Operations(c, s) {
				if op.Row().Suffix == "" {
					t.Errorf("shape=%v of %v has a task %v, which has no name", s, c, op)
				}
			}
		}
	}
	for s, about := range shapes {
		if have := ShapesOf(Bcast); s > 0 && about.common != slices.Contains(have, Shape(s)) && !slices.Contains([]Shape{SAG, FlatSAG}, Shape(s)) {
			t.Errorf("shape %v is common: %v, but bcast has the shapes %v", Shape(s), about.common, have)
		}
	}
}

// What an alltoall needs is said in its row: the questions about a request have the right
// answers.
func TestAlltoallPromisesBlocksOfAll(t *testing.T) {
	// Rank 1 of 3: block 1 of each rank's input, three elements of two bytes each.
	r := Request{Coll: Alltoall, Count: 3, Type: Int16}
	if !r.TakesBlocks() || !r.GivesBlocks() || r.Reduces() || r.Rooted() {
		t.Errorf("%v takes blocks %v, gives blocks %v, reduces %v, has a root %v", r, r.TakesBlocks(), r.GivesBlocks(), r.Reduces(), r.Rooted())
	}
	want := []Piece{{At: 0, Len: 6, From: 1, Off: 0}, {At: 6, Len: 6, From: 1, Off: 6}, {At: 12, Len: 6, From: 1, Off: 12}}
	if diff := cmp.Diff(want, r.Given(1, 3)); diff != "" {
		t.Errorf("%v: given (-want +got):\n%s", r, diff)
	}
	want = []Piece{{At: 0, Len: 6, From: 0, Off: 6}, {At: 6, Len: 6, From: 1, Off: 6}, {At: 12, Len: 6, From: 2, Off: 6}}
	if diff := cmp.Diff(want, r.Promised(1, 3)); diff != "" {
		t.Errorf("%v: promised (-want +got):\n%s", r, diff)
	}
	for inPlace, want := range map[bool][2]int64{false: {18, 18}, true: {0, 18}} {
		r.InPlace = inPlace
		if send, recv := r.Buffers(1, 3); send != want[0] || recv != want[1] || (r.Input(1) == Recv) != inPlace {
			t.Errorf("%v, in place %v: buffers of %d and %d bytes, input in %v", r, inPlace, send, recv, r.Input(1))
		}
	}
	if got := Alltoall.BusFactor(4); got != 0.75 || !Alltoall.Scatters() {
		t.Errorf("alltoall: bus factor %v, scatters %v", got, Alltoall.Scatters())
	}
}

// Each rank of a scan is promised what the ranks through it have, of an exscan what
// those before it have.
func TestScansPromisePrefixes(t *testing.T) {
	for _, tc := range []struct {
		coll Collective
		rank levels.Rank
		want []Piece
	}{
		{Scan, 0, []Piece{{Len: 6}}},
		{Scan, 2, []Piece{{Len: 6, More: 2}}},
		{Exscan, 0, nil},
		{Exscan, 1, []Piece{{Len: 6}}},
		{Exscan, 3, []Piece{{Len: 6, More: 2}}},
	} {
		r := Request{Coll: tc.coll, Count: 3, Type: Int16, Op: Sum}
		if diff := cmp.Diff(tc.want, r.Promised(tc.rank, 4)); diff != "" || !r.Reduces() || r.Blocks() || r.Rooted() {
			t.Errorf("%v: promised to rank %d (-want +got):\n%s", r, tc.rank, diff)
		}
		if send, recv := r.Buffers(tc.rank, 4); send != 6 || recv != 6 {
			t.Errorf("%v: buffers of %d and %d bytes", r, send, recv)
		}
	}
}
