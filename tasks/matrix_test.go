package tasks_test

import (
	"math"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/tasks"
)

// A matrix knows what its rows say: counts, sums before each, and what ranks give and get.
func TestMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "ranks")
		rows := make([][]int, n)
		for from := range rows {
			for range n {
				rows[from] = append(rows[from], rapid.IntRange(0, 5).Draw(t, "count"))
			}
		}
		m, err := tasks.NewMatrix(rows)
		if err != nil {
			t.Fatal(err)
		}
		again, err := tasks.NewMatrix(m.Rows())
		if err != nil || again != m || m.Len() != n || m.IsZero() {
			t.Fatalf("%v of %d ranks isn't %v: %v", again, n, m, err)
		}
		most, busiest := 0, 0
		for a := range n {
			gives, gets, even := 0, 0, true
			for b := range n {
				if m.At(a, b) != int64(rows[a][b]) || m.Given(a, b) != int64(gives) || m.Gotten(a, b) != int64(gets) {
					t.Fatalf("%v: %d gives %d %d elements, %d before; %d to get before", rows, a, b, m.At(a, b), m.Given(a, b), m.Gotten(a, b))
				}
				gives, gets, even = gives+rows[a][b], gets+rows[b][a], even && rows[a][b] == rows[b][a]
				most = max(most, rows[a][b])
			}
			if m.Gives(a) != int64(gives) || m.Gets(a) != int64(gets) || m.IsEven(a) != even {
				t.Fatalf("%v: %d gives %d, gets %d, is even: %v", rows, a, m.Gives(a), m.Gets(a), m.IsEven(a))
			}
			busiest = max(busiest, gives, gets)
		}
		if m.Max() != int64(most) || m.Busiest() != int64(busiest) {
			t.Fatalf("%v: at most %d, busiest %d", rows, m.Max(), m.Busiest())
		}
	})
}

// Matrices of the same counts are equal, others are not, and their names differ.
func TestMatricesCompare(t *testing.T) {
	one, err := tasks.NewMatrix([][]int{{1, 2}, {3, 4}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := tasks.NewMatrix([][]int{{1, 3}, {2, 4}})
	if err != nil {
		t.Fatal(err)
	}
	if one == other || one.String() == other.String() || !strings.HasPrefix(one.String(), "2x2 (10, ") {
		t.Errorf("%v and %v are hard to tell apart", one, other)
	}
	if zero := (tasks.Matrix{}); !zero.IsZero() || zero.Len() != 0 || zero.Max() != 0 {
		t.Errorf("the zero matrix is %v", zero)
	}
}

func TestMatrixErrors(t *testing.T) {
	for _, tc := range []struct {
		rows [][]int
		want string
	}{
		{nil, "counts for 0 ranks: allowed are 1 to 1024 ranks"},
		{make([][]int, 1025), "counts for 1025 ranks: allowed are 1 to 1024 ranks"},
		{[][]int{{1, 2}, {3}}, "rank 1 has 1 counts for 2 ranks"},
		{[][]int{{1, -2}, {3, 4}}, "count -2 from rank 0 to rank 1: counts are not negative and add up to less than 2^63"},
		{[][]int{{1, math.MaxInt}, {3, 4}}, "count 9223372036854775807 from rank 0 to rank 1: counts are not negative"},
		{[][]int{{0, math.MaxInt}, {0, 1}}, "count 1 from rank 1 to rank 1: what a rank gets adds up to less than 2^63"},
	} {
		if _, err := tasks.NewMatrix(tc.rows); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got error %v, want %q", err, tc.want)
		}
	}
}

// A request of a matrix says what each rank has: the input of one, and the result of the
// other.
func TestMatrixRequest(t *testing.T) {
	m, err := tasks.NewMatrix([][]int{{1, 0, 2}, {0, 0, 3}, {4, 1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	r := tasks.Request{Coll: tasks.Alltoall, Type: tasks.Int16, Matrix: m, Count: 4}
	if err := r.Validate(3); err != nil {
		t.Error(err)
	}
	if text := r.String(); text != "alltoall "+m.String()+" i16" {
		t.Error(text)
	}
	want := []tasks.Piece{{At: 0, Len: 4, From: 0, Off: 2}, {At: 4, Len: 6, From: 1, Off: 0}}
	if diff := gocmp.Diff(want, r.Promised(2, 3)); diff != "" {
		t.Errorf("promised to rank 2 (-want +got):\n%s", diff)
	}
	want = []tasks.Piece{{At: 0, Len: 8, From: 2, Off: 0}, {At: 8, Len: 2, From: 2, Off: 8}}
	if diff := gocmp.Diff(want, r.Given(2, 3)); diff != "" {
		t.Errorf("given by rank 2 (-want +got):\n%s", diff)
	}
	if send, recv := r.Buffers(0, 3); send != 6 || recv != 10 || r.AllBytes(3) != 10 || r.MeanBytes() != 4 {
		t.Errorf("rank 0 has buffers of %d and %d bytes; all are %d at most, %d a block", send, recv, r.AllBytes(3), r.MeanBytes())
	}
	for want, change := range map[string]func(r *tasks.Request){
		"only alltoall and neighbors may have blocks that differ for each pair": func(r *tasks.Request) { r.Coll = tasks.Allgather },
		"count 3 is not the largest of 3x3 (11, ":                               func(r *tasks.Request) { r.Count = 3 },
		"pitch 9: blocks that differ lie side by side":                          func(r *tasks.Request) { r.Pitch = 9 },
	} {
		wrong := r
		change(&wrong)
		if err := wrong.Validate(3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	if err := r.Validate(4); err == nil || !strings.Contains(err.Error(), "3 ranks, and there are 4") {
		t.Errorf("for 4 ranks: got error %v", err)
	}
}
