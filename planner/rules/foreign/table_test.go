package foreign

import (
	"strings"
	"testing"
)

// Algorithms that need a power of two or an even number are others elsewhere, or none.
func TestFor(t *testing.T) {
	for _, test := range []struct {
		coll, name string
		ranks      int64
		want       string
	}{
		{"bcast", "scatter_allgather", 8, "iag=nbc/recdoubling"},
		{"bcast", "scatter_allgather", 12, "iag=nbc/bruck"},
		{"allgather", "neighbor", 6, "iag=nbc/neighbor"},
		{"allgather", "neighbor", 7, "iag=nbc/ring"},
		{"reduce_scatter_block", "recursive_halving", 16, "irs=nbc/halving"},
		{"reduce_scatter_block", "recursive_halving", 6, ""},
		{"alltoall", "two_proc", 2, ""},
		{"alltoall", "pairwise", 7, "ia=nbc/pairwise"},
	} {
		r, err := Find(OpenMPI, test.coll, test.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.For(test.ranks); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s %s of %d ranks: %q, want %q", test.coll, test.name, test.ranks, got, test.want)
		}
	}
	if _, err := Find(MPICH, "bcast", "6"); err == nil || !strings.Contains(err.Error(), `bcast "6": unknown; mpich has MPIR_Bcast_intra_binomial`) {
		t.Errorf("a number of MPICH's: %v", err)
	}
	if _, err := Find("nccl", "bcast", "ring"); err == nil || err.Error() != "bcast: nothing is known of nccl's" {
		t.Errorf("another library: %v", err)
	}
}

// Rows have a plan or say why not, and what a plan does in another way belongs to one.
func TestClosest(t *testing.T) {
	n := 0
	for _, r := range rows {
		if r.Closest != "" {
			n++
		}
		if r.Closest != "" && r.Plan == "" || strings.HasPrefix(r.Closest, "~") || strings.HasPrefix(r.Why, "!") {
			t.Errorf("%+v", r)
		}
	}
	if n < 5 {
		t.Errorf("only %d rows say what they do in another way", n)
	}
}

// Mistakes in a file of JSON are told with their lines, and with what is allowed. Keys that nobody
// reads are noted.
func TestJSONComplaints(t *testing.T) {
	in := func(rule string) string {
		return "{\"collectives\":{\n\"bcast\":[\n{\"rules\":[\n" + rule + "]}]}}"
	}
	for _, test := range []struct{ text, want string }{
		{"{}", `f:1: no "collectives", an object`},
		{"{\"collectives\":\n{\"bcats\":[]}}", `f:2: unknown collective "bcats"; Open MPI has allgather, `},
		{"{\"collectives\":{\"bcast\":{}}}", "f:1: bcast: expected a list of rules"},
		{"{\"collectives\":{\"bcast\":[\n{}]}}", `f:2: no "rules", a list`},
		{in("{}"), `f:4: no "alg", an algorithm's number or name`},
		{in(`{"alg":6,"faninout":-1}`), "f:4: faninout -1; allowed are whole numbers from 0"},
		{in(`{"alg":6,"seg_size":"x"}`), "f:4: seg_size x; allowed are whole numbers from 0"},
		{"{\"collectives\":{\"bcast\":[{\"comm_rank_distribution\":\"odd\",\"rules\":[]}]}}", "f:1: comm_rank_distribution odd; allowed are any, one-per-node and single-node"},
		{"{\"collectives\":{}}{}", "f:1: more than one value"},
		{strings.Repeat("[", 200), "f:1: nested more than 100 deep"},
	} {
		if _, _, err := ReadJSON("f", test.text); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%q: %v, want %s", test.text, err, test.want)
		}
	}
	text, notes, err := ReadJSON("f", in(`{"alg":"chain","segsize":4096,"msg_size_max":99}`))
	if err != nil || len(notes) != 1 || notes[0].String() != `line 4: "segsize" is unknown: skipped, as Open MPI does` {
		t.Errorf("%v %q", err, notes)
	}
	b := parse(t, text)
	if small, large := decided(b, findCollective("bcast"), 4, 99), decided(b, findCollective("bcast"), 4, 100); !strings.Contains(small, "ib=adapt/chain,") || large != "default" {
		t.Errorf("%s and %s", small, large) // a fan-out that is not there is 0: one chain
	}
}
