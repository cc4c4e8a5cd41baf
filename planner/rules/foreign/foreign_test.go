package foreign

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// paperFile is the paper's example, section 5.4, with the count of collectives that its print
// lost.
const paperFile = `1          # num of collectives
3          # ID = 3 Alltoall collective (ID in coll_tuned.h)
2          # number of com sizes
1          # comm size 1
1          # number of msg sizes 1
0 1 0 0              # for message size 0, linear 1, topo 0, 0 segmentation
8          # comm size 8
4          # number of msg sizes
0 1 0 0              # for message size 0, linear 1, topo 0, 0 segmentation
32768 2 0 0 # 32k, pairwise 2, no topo or segmentation
262144 1 0 0 # 256k, use linear 1, no topo or segmentation
524288 2 0 0 # message size 512k+, pairwise 2, topo 0, 0 segmentation
# end of first collective
`

func parse(t *testing.T, text string) *rules.Base {
	t.Helper()
	b, err := rules.Parse("read.rules", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return b
}

// decided returns the plan for a request of a library's collective.
func decided(b *rules.Base, c *collective, ranks, size int64) string {
	p := Layout{}.params(c, ranks, size)
	l, _ := b.Decide(p)
	if l == nil || l.Default {
		return "default"
	}
	return b.Plan(l, p).String()
}

func TestPaperFile(t *testing.T) {
	text, notes, err := ReadClassic("paper", paperFile, For4)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	b := parse(t, text)
	const linear, pairwise = "shape=flat,fs=all,w=4,ia=nbc/linear,sa=nbc/linear", "shape=flat,fs=all,w=4,ia=nbc/pairwise,sa=nbc/pairwise"
	for _, test := range []struct {
		ranks, size int64
		want        string
	}{{2, 1 << 20, linear}, {7, 1 << 20, linear}, {8, 32767, linear}, {8, 32768, pairwise}, {64, 262144, linear}, {64, 524287, linear}, {64, 524288, pairwise}} {
		if got := decided(b, findCollective("alltoall"), test.ranks, test.size); got != test.want {
			t.Errorf("%d ranks, %d bytes in all: %s, want %s", test.ranks, test.size, got, test.want)
		}
	}
}

// A fan-out of 0 is one chain in a file, though parameters have 4, and none of a knomial tree.
func TestFanOut(t *testing.T) {
	text, notes, err := ReadClassic("f", "2\n7\n1\n1\n2\n0 2 0 0\n64 2 3 0\n11\n1\n1\n1\n0 8 0 0", For5)
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0].String(), "line 12: reduce knomial with fan-out 0") {
		t.Fatal(err, notes)
	}
	b := parse(t, text)
	for _, test := range []struct {
		coll string
		size int64
		want string
	}{{"bcast", 63, "ib=adapt/chain,"}, {"bcast", 64, "ib=adapt/kchain//3,"}, {"reduce", 8, "ir=adapt/binomial//4,"}} {
		if got := decided(b, findCollective(test.coll), 8, test.size); !strings.Contains(got, test.want) {
			t.Errorf("%s of %d bytes: %s, want %s", test.coll, test.size, got, test.want)
		}
	}
	written, notes := WriteClassic(parse(t, "bcast: if bytes < 64 then shape=flat,ib=adapt/kchain else shape=flat,ib=adapt/kchain/4KiB/7\nreduce: shape=flat,ir=adapt/binomial//4"), Layout{}, For5)
	for _, want := range []string{"0 2 4 0 ", "64 2 7 4096 ", "0 8 4 0 "} {
		if !strings.Contains(written, "\n"+want) || len(notes) > 0 {
			t.Errorf("no %q in\n%s%q", want, written, notes)
		}
	}
}

// Main's reader takes each section for the next smaller numbers of ranks.
func TestVersions(t *testing.T) {
	const file = "1\n7\n2\n2\n1\n0 6 0 0\n64\n1\n0 3 0 32768\n"
	for version, want := range map[string]string{For4: "binomial", For5: "binomial", ForMain: "chain/32KiB"} {
		text, notes, err := ReadClassic("f", file, version)
		if err != nil || len(notes) > 0 != (version == ForMain) {
			t.Fatal(err, notes)
		}
		if got := decided(parse(t, text), findCollective("bcast"), 8, 100); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

func TestClassicComplaints(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "f:1: the file ends; expected the number of collectives"},
		{"1\n77", "f:2: 77 for a collective's number; allowed are 0 to 21"},
		{"1\n7\n1\n2\n1\n8 6 0 0", "f:6: the first message size is 8; it must be 0"},
		{"1\n7\n2\n8\n1\n0 6 0 0\n8\n1\n0 6 0 0", "f:7: communicator size 8 after 8; they ascend"},
		{"1\n7\n1\n2\n2\n0 6 0 0\n0 6 0 0", "f:7: message size 0 after 0; they ascend"},
		{"1\n7\n1\n2\n1\n0 6 0 0 16\n", `f:6: 16 after the last collective; a fifth column needs rule-file-version-2 at the very beginning`},
		{"1\n7\n1\n2\n1\n0 6 0 1z", `f:6: "1z" is no number`},
		{"rule-file-version-3\n1", "f:1: rule-file-version-3; versions 1 and 2 are known"},
	} {
		if _, _, err := ReadClassic("f", test.text, For4); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%q: %v, want %s", test.text, err, test.want)
		}
	}
	text, notes, err := ReadClassic("f", "rule-file-version-2\n3\n10\n0\n0\n1\n0\n1\n0 7 0 0\n3 1\n0x10 2\n0 4 0 0 16\n010 3 7 0", For4)
	want := []string{"line 3: gatherv has no counterpart", "line 9: allgather 7, sparbit, has no counterpart (bruck with", "line 12: alltoall: at most 16 requests", "line 13: alltoall 3, modified_bruck, takes no fan-out 7"}
	ok := err == nil && len(notes) == len(want)
	for i := range notes {
		ok = ok && strings.HasPrefix(notes[i].String(), want[i])
	}
	if !ok {
		t.Errorf("%v, %q, want %q", err, notes, want)
	}
	b := parse(t, text)
	if got := decided(b, findCollective("alltoall"), 16, 8); !strings.Contains(got, "nbc/bruck") { // 010 is octal
		t.Error(got)
	}
}

// drawnFile is a file of algorithms with a counterpart.
func drawnFile(rng *rand.Rand) string {
	var b strings.Builder
	n := 0
	for i := range collectives {
		c := &collectives[i]
		if rng.IntN(2) == 0 {
			continue
		}
		n++
		var known []Row
		for _, r := range rows {
			if r.Library == OpenMPI && r.Collective == c.name && r.Plan != "" {
				known = append(known, r)
			}
		}
		sections := 1 + rng.IntN(3)
		fmt.Fprintf(&b, "%d\n%d\n", c.id, sections)
		ranks := int64(2)
		for range sections {
			steps := 1 + rng.IntN(4)
			if c.size == "0" {
				steps = 1
			}
			fmt.Fprintf(&b, "%d\n%d\n", ranks, steps)
			ranks += rng.Int64N(60) + 1
			size := int64(0)
			for range steps {
				number, segment := 0, 0
				if rng.IntN(5) > 0 {
					number = known[rng.IntN(len(known))].Number
					segment = 4096 * rng.IntN(3)
				}
				fmt.Fprintf(&b, "%d %d 0 %d\n", size, number, segment)
				size += rng.Int64N(1<<uint(4+rng.IntN(16))) + 64*64
			}
		}
	}
	return fmt.Sprintf("%d\n%s", n, b.String())
}

// What is read, written, and read again decides the same, in both formats.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(34, 1))
	questions := 0
	for questions < 10_000 {
		file := drawnFile(rng)
		text, _, err := ReadClassic("f", file, For4)
		if err != nil {
			t.Fatalf("%v in\n%s", err, file)
		}
		first := parse(t, text)
		if again := parse(t, first.Format()).Format(); again != first.Format() {
			t.Fatalf("formatted twice:\n%s", again)
		}
		for _, version := range []string{For4, ForMain, "json"} {
			var written string
			var notes []Note
			if version == "json" {
				written, notes, err = WriteJSON(first, Layout{})
				if err == nil {
					text, _, err = ReadJSON("f", written)
				}
			} else {
				written, notes = WriteClassic(first, Layout{}, version)
				text, _, err = ReadClassic("f", written, version)
			}
			if err != nil || len(notes) > 0 {
				t.Fatalf("%s: %v, %q in\n%s\nof\n%s", version, err, notes, written, first.Text())
			}
			second := parse(t, text)
			for range 400 {
				c := &collectives[rng.IntN(len(collectives))]
				ranks, size := 2+rng.Int64N(250), rng.Int64N(1<<uint(1+rng.IntN(24)))
				questions++
				if got, want := decided(second, c, ranks, size), decided(first, c, ranks, size); got != want {
					t.Fatalf("%s: %s, %d ranks, %d bytes: %s, want %s\n%s\n%s", version, c.name, ranks, size, got, want, file, written)
				}
			}
		}
	}
}

// Every plan of the table can be read; its numbers go where Open MPI has them.
func TestRows(t *testing.T) {
	for _, r := range rows {
		if r.Plan == "" != (r.Why != "") || r.Collective == "" || findCollective(r.Collective) == nil {
			t.Errorf("%+v", r)
		}
		for _, plan := range []string{r.Plan, r.Else} {
			if plan == "" {
				continue
			}
			text, _ := fill(plan, settings{Segment: 8192})
			p, err := tasks.ParsePlan(text)
			if err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if r.Library != OpenMPI {
				continue
			}
			fan := 0
			if r.Name == "chain" || r.Collective == "reduce" && r.Name == "knomial" {
				fan = 4
			}
			if back, s, known := match(OpenMPI, r.Collective, p); !known || s.Segment != 8192 || s.Fan != fan || plan == r.Plan && back.Number != r.Number {
				t.Errorf("%s %s: %s goes back to %s with %+v", r.Collective, r.Name, text, back.Name, s)
			}
		}
	}
}

func TestWords(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"fs=4KiB", "fs=4KiB"},
		{"bcast:ompi=6/65536", "bcast:shape=flat,fs=all,w=4,ib=adapt/binomial/64KiB,sb=adapt/binomial/64KiB"},
		{"w=2;bcast:w=3,ompi=binomial", "w=2;bcast:w=3,shape=flat,fs=all,w=4,ib=adapt/binomial,sb=adapt/binomial"},
		{"bcast:ompi=chain/8KiB/2", "bcast:shape=flat,fs=all,w=4,ib=adapt/kchain/8KiB/2,sb=adapt/kchain/8KiB/2"},
		{"bcast:ompi=0", "bcast:"},
		{"allreduce:mpich=recursive_doubling", "allreduce:shape=flat-ar,fs=all,w=4,iar=nbc/recdoubling,sar=nbc/recdoubling"},
	} {
		if got, err := rules.ExpandWords(test.text); got != test.want || err != nil {
			t.Errorf("%s: %s, %v, want %s", test.text, got, err, test.want)
		}
	}
	for text, want := range map[string]string{
		"ompi=6":                `plan "ompi=6": ompi= numbers algorithms of a collective; write bcast:ompi=6`,
		"bcast:ompi=66":         `bcast "66": unknown; ompi has 1 basic_linear, 2 chain,`,
		"alltoall:ompi=5":       "alltoall two_proc has no counterpart: one exchange",
		"bcast:ompi=6/x":        `"x" is not a byte count`,
		"bcast:mpich=binomial/": "write ompi=NUMBER[/SEGMENT[/FAN]] or mpich=NAME",
		"bcast:ompi=6/0/3":      "takes no fan-out 3 here",
	} {
		if _, err := rules.ExpandWords(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// checkRead checks what a reader makes of any file f: rules that can be read, or a complaint with a line.
func checkRead(t *testing.T, made string, err error) {
	t.Helper()
	if err == nil {
		parse(t, made)
	} else if !strings.HasPrefix(err.Error(), "f:") {
		t.Fatal(err)
	}
}

func FuzzReadClassic(f *testing.F) {
	f.Add(paperFile)
	f.Add("rule-file-version-2\n1\n7\n1\n2\n1\n0 6 0 0 3\n")
	f.Add("1\n7\n1\n2\n1\n0 2 1025 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, version := range []string{For4, ForMain} {
			out, _, err := ReadClassic("f", text, version)
			checkRead(t, out, err)
		}
	})
}

func FuzzReadJSON(f *testing.F) {
	f.Add(`{"collectives":{"bcast":[{"comm_size_min":4,"comm_rank_distribution":"one-per-node","rules":[{"msg_size_min":65536,"alg":"chain","faninout":4,"seg_size":32768}]}]}}`)
	f.Add(`{"collectives":{"bcast":[{"rules":[{"alg":"chain","faninout":1025}]}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		out, _, err := ReadJSON("f", text)
		checkRead(t, out, err)
	})
}

// hanExample is of the kind that the main branch reads.
const hanExample = `2
allreduce
1
global_communicator
2
1                      # communicators of 1 rank and more
2
0       tuned
4096    han @simple
128                    # 128 ranks and more
2
0       han @simple
262144  han @intra
bcast
3
global_communicator
1
1
1
0 han
intra_node
1
1
2
0       tuned
8192    sm
inter_node
1
1
1
0       libnbc
`

func TestHAN(t *testing.T) {
	text, notes, err := ReadHAN("han", hanExample)
	if err != nil || len(notes) != 2 {
		t.Fatalf("%v %q\n%s", err, notes, text)
	}
	b := parse(t, text)
	for _, test := range []struct {
		coll        string
		ranks, size int64
		want        string
	}{
		{"allreduce", 64, 4095, "shape=flat"},
		{"allreduce", 64, 1 << 20, "shape=ar,fs=all,w=4"},
		{"allreduce", 128, 262143, "shape=ar,fs=all,w=4"},
		{"allreduce", 128, 262144, "shape=han-lockstep,fs=64KiB,w=4"},
		{"bcast", 4, 8191, "shape=han-lockstep,fs=64KiB,w=4,ib=nbc/binomial"},
		{"bcast", 4, 8192, "shape=han-lockstep,fs=64KiB,w=4,ib=nbc/binomial,s=sm/slots"},
		{"reduce", 4, 8192, "default"},
	} {
		if got := decided(b, findCollective(test.coll), test.ranks, test.size); got != test.want {
			t.Errorf("%s, %d ranks, %d bytes: %s, want %s", test.coll, test.ranks, test.size, got, test.want)
		}
	}
	written, _ := WriteHAN(b, Layout{}, For5)
	again, _, err := ReadHAN("han", written)
	if err != nil {
		t.Fatalf("%v in\n%s", err, written)
	}
	c := parse(t, again)
	for _, ranks := range []int64{2, 127, 128, 4000} {
		for _, size := range []int64{0, 4095, 4096, 262143, 262144} {
			if got, want := decided(c, findCollective("allreduce"), ranks, size), decided(b, findCollective("allreduce"), ranks, size); got != want {
				t.Errorf("%d ranks, %d bytes: %s, want %s\n%s", ranks, size, got, want, written)
			}
		}
	}
	for file, want := range map[string]string{
		"1\nbcast\n1\nglobal_communicator\n1\n2\n1\n0 han": "han:6: communicator size 2; the first is 1",
		"1\nbcast\n1\n2\n1\n1\n1\n0 6":                     `han:8: "6" for a component; allowed are self, basic,`,
		"1\nbcast\n1\n2\n1\n1\n1\n0 tuned @simple":         "han:8: tuned @simple; an algorithm comes after han only",
		"1\nbcast\n1\n2\n1\n1\n1\n0 han\n7":                `han:9: "7" after the last collective`,
	} {
		if _, _, err := ReadHAN("han", file); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", file, err, want)
		}
	}
}

// MPICH's own choices are read; what is written of them decides the same.
func TestMPICH(t *testing.T) {
	text, notes, err := ReadMPICH("own", string(mpichOwn(false)))
	if err != nil {
		t.Fatal(err)
	}
	first := parse(t, text)
	for _, n := range notes {
		if n.Line == 0 {
			t.Errorf("no line: %v", n)
		}
	}
	written, notes, err := WriteMPICH(first, Layout{}, false)
	if err != nil || len(notes) > 20 {
		t.Fatal(err, notes)
	}
	text, _, err = ReadMPICH("written", written)
	if err != nil {
		t.Fatalf("%v in\n%.2000s", err, written)
	}
	second := parse(t, text)
	rng := rand.New(rand.NewPCG(34, 2))
	seen := map[string]bool{}
	for range 10_000 {
		c := collectives[rng.IntN(len(collectives))]
		if c.size == perElement {
			c.size = "bytes"
		}
		ranks, size := 2+rng.Int64N(100), 4*rng.Int64N(1<<uint(1+rng.IntN(22)))
		got, want := decided(second, &c, ranks, size), decided(first, &c, ranks, size)
		if seen[want] = true; got != want {
			t.Fatalf("%s, %d ranks, %d bytes: %s, want %s", c.name, ranks, size, got, want)
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %d plans: %v", len(seen), seen)
	}
	rule := parse(t, "bcast: if nodes > 1 and bytes <= 1MiB then shape=han,ib=adapt/binomial else default")
	written, notes, err = WriteMPICH(rule, Layout{PerNode: 4}, true)
	if err != nil || !strings.Contains(written, `"avg_msg_size<=1048576": {"composition=MPIDI_Bcast_intra_composition_alpha": {}}`) || len(notes) != 1 {
		t.Errorf("%v %q\n%s", err, notes, written)
	}
	for file, want := range map[string]string{
		`{"collective=bcast":{"comm_sise<3":{}}}`: `f:1: unknown condition "comm_sise<3"`,
		"{\n\"bcast\":{}}":                        `f:2: "bcast"; expected collective=NAME`,
		"{\n":                                     "f:1: unexpected EOF",
		"[":                                       "f:1: unexpected EOF",
	} {
		if _, _, err := ReadMPICH("f", file); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", file, err, want)
		}
	}
}

func FuzzReadHAN(f *testing.F) {
	f.Add(hanExample)
	f.Fuzz(func(t *testing.T, text string) {
		out, _, err := ReadHAN("f", text)
		checkRead(t, out, err)
	})
}

func FuzzReadMPICH(f *testing.F) {
	// Short ones, which are quick to change: TestMPICHsOwn reads whole files.
	f.Add(`{"collective=allreduce":{"comm_type=intra":{"comm_hierarchy=flat":{"comm_size=pow2":{"avg_msg_size<=2048":{"algorithm=MPIR_Allreduce_intra_recursive_doubling":{}},"count<pow2":{"algorithm=MPIR_Allreduce_intra_recursive_doubling":{}},"any":{"algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather":{}}}}}}}`)
	f.Add(`{"collective=bcast":{"comm_avg_ppn<=2":{"is_commutative=yes":{"total_msg_size<9":{"composition=MPIDI_Bcast_intra_composition_alpha":{}}}}}}`)
	f.Add(`{"collective=bcast":{"comm_size<4":{"any":{"algorithm=MPIR_Bcast_intra_binomial":{}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		out, _, err := ReadMPICH("f", text)
		checkRead(t, out, err)
	})
}
