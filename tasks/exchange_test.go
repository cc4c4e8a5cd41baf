package tasks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels"
)

// Where an alltoall's blocks lie on their way: two bytes each, for 4 ranks.
func TestExchange(t *testing.T) {
	for _, tc := range []struct {
		topo, plan string
		rank       levels.Rank
		inPlace    bool
		counts     [][]int  // of elements, by giver; nil: two for each
		want       []string // by task: what goes to each member | what comes; or parts and what is held
		bytes      int64
	}{
		{
			"2x2", "shape=flat,fs=all,w=1", 1, false, nil,
			[]string{"ia#0 [send[0:2]] [send[2:4]] [send[4:6]] [send[6:8]] | [recv[0:2]] [recv[2:4]] [recv[4:6]] [recv[6:8]]"},
			0,
		},
		{
			"2", "shape=flat,fs=1,w=1", 0, true, nil,
			[]string{
				"sa#0 [recv[0:1]] [recv[2:3]] | [recv[0:1]] [recv[2:3]]",
				"sa#1 [recv[1:2]] [recv[3:4]] | [recv[1:2]] [recv[3:4]]",
			},
			0,
		},
		{
			"2x2", "shape=han,fs=all,w=1", 2, false, nil,
			[]string{
				"sg#0 [scratch[0:8]] [scratch[8:16]] | [send[0:8]]",
				"ia#0 [scratch[0:2] scratch[2:4] scratch[8:10] scratch[10:12]] [scratch[4:6] scratch[6:8] scratch[12:14] scratch[14:16]]" +
					" | [scratch[16:18] scratch[24:26] scratch[18:20] scratch[26:28]] [scratch[20:22] scratch[28:30] scratch[22:24] scratch[30:32]]",
				"ss#0 [scratch[16:24]] [scratch[24:32]] | [recv[0:8]]",
			},
			32,
		},
		{
			"2x2", "shape=han,fs=all,w=1", 3, true, nil,
			[]string{"sg#0 [Region(0)[0:8]] [Region(0)[0:8]] | [recv[0:8]]", "ss#0 [Region(0)[0:8]] [Region(0)[0:8]] | [recv[0:8]]"},
			0,
		},
		{
			"a:3,b:1", "shape=han,fs=1,w=1", 3, false, nil,
			[]string{
				"ia#0 [send[0:1] send[2:3] send[4:5]] [send[6:7]] | [recv[0:1] recv[2:3] recv[4:5]] [recv[6:7]]",
				"ia#1 [send[1:2] send[3:4] send[5:6]] [send[7:8]] | [recv[1:2] recv[3:4] recv[5:6]] [recv[7:8]]",
			},
			0,
		},
		{
			"1", "shape=han,fs=all,w=1", 0, false, nil,
			[]string{"sa#0 [send[0:2]] | [recv[0:2]]"},
			0,
		},
		{ // a block's last segment is shorter
			"2", "shape=flat,fs=2,w=1", 0, false,
			[][]int{{3, 1}, {4, 3}},
			[]string{
				"sa#0 [send[0:2]] [send[3:4]] | [recv[0:2]] [recv[3:5]]",
				"sa#1 [send[2:3]] [] | [recv[2:3]] [recv[5:7]]",
			},
			0,
		},
		{ // what is empty is no piece
			"2", "shape=flat,fs=all,w=1", 0, false,
			[][]int{{1, 0}, {2, 3}},
			[]string{"sa#0 [send[0:1]] [] | [recv[0:1]] [recv[1:3]]"},
			0,
		},
	} {
		p, err := ParsePlan(tc.plan)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Coll: Alltoall, Count: 2, Type: Uint8, InPlace: tc.inPlace}
		if tc.counts != nil {
			if r.Matrix, err = NewMatrix(tc.counts); err != nil {
				t.Fatal(err)
			}
			r.Count = r.Matrix.Max()
		}
		g, err := Expand(r, parsed(t, tc.topo), p, tc.rank)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range g.Nodes() {
			task := &g.Nodes()[i]
			out, in := [][]Span(nil), [][]Span(nil)
			if task.Kind.Op == Alltoall {
				out, in = g.Exchange(task)
			} else {
				var held []Span
				out, held = g.Parts(task)
				in = [][]Span{held}
			}
			got = append(got, fmt.Sprintf("%v %s | %s", task, texts(out), texts(in)))
		}
		if text, want := strings.Join(got, "\n"), strings.Join(tc.want, "\n"); text != want || g.slotBytes != tc.bytes {
			t.Errorf("%s on %s, rank %d keeps %d bytes:\n%s\nwant %d:\n%s", tc.plan, tc.topo, tc.rank, g.slotBytes, text, tc.bytes, want)
		}
	}
}

// texts are lists of spans, one after the other.
func texts(all [][]Span) string {
	text := make([]string, len(all))
	for i, spans := range all {
		text[i] = fmt.Sprint(spans)
	}
	return strings.Join(text, " ")
}
