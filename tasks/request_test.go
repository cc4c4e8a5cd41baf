package tasks_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/tasks"
)

// TestValidate gives all complaints at once, one a line.
func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name string
		r    tasks.Request
		want string
	}{
		{"bcast", tasks.Request{Coll: tasks.Bcast, Count: 1, Type: tasks.Int8, Root: 3}, ""},
		{"bcast of nothing", tasks.Request{Coll: tasks.Bcast, Type: tasks.Int8}, ""},
		{"allreduce ignores root", tasks.Request{Coll: tasks.Allreduce, Type: tasks.Float32, Op: tasks.Max, Root: 99}, ""},
		{"allgather", tasks.Request{Coll: tasks.Allgather, Count: 1, Type: tasks.Int8}, ""},
		{"too many blocks", tasks.Request{Coll: tasks.Allgather, Count: math.MaxInt64 / 8, Type: tasks.Float64}, "count 1152921504606846975: 4 blocks are more than 2^63 bytes"},
		{"barrier ignores the type", tasks.Request{Coll: tasks.Barrier}, ""},
		{"the largest count", tasks.Request{Coll: tasks.Bcast, Count: math.MaxInt64 / 8, Type: tasks.Float64}, ""},

		{"barrier with data", tasks.Request{Coll: tasks.Barrier, Count: 1}, "count 1: a barrier moves no data"},
		{"zero value", tasks.Request{}, "collective Collective(0) can't be requested; known are [bcast reduce allreduce allgather gather scatter reducescatter alltoall barrier scan exscan]"},
		{"reduce", tasks.Request{Coll: tasks.Reduce, Count: 1, Type: tasks.Int8, Op: tasks.Sum, Root: 3}, ""},
		{"too many bytes", tasks.Request{Coll: tasks.Bcast, Count: math.MaxInt64/8 + 1, Type: tasks.Float64}, "count 1152921504606846976 is not between 0 and 2^63 bytes"},
		{
			"all wrong",
			tasks.Request{Coll: tasks.Bcast, Count: -1, Root: 4},
			"datatype Datatype(0) is not an element type\ncount -1 is not between 0 and 2^63 bytes\nroot 4: ranks are 0 to 3",
		},
		{
			"all wrong but the root",
			tasks.Request{Coll: tasks.Allreduce, Count: -5, Type: 99, Root: -1},
			"datatype Datatype(99) is not an element type\ncount -5 is not between 0 and 2^63 bytes\noperation Op(0) is not a reduction; allowed are those such as tasks.Sum, and what tasks.UserOp makes",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if err := tc.r.Validate(4); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestText(t *testing.T) {
	for _, tc := range []struct {
		r     tasks.Request
		want  string
		bytes int64
	}{
		{tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Float64, Root: 2}, "bcast 3 f64 root 2", 24},
		{tasks.Request{Coll: tasks.Allreduce, Count: 5 << 30, Type: tasks.BFloat16, Op: tasks.Sum}, "allreduce 5368709120 bf16 sum", 10 << 30},
		{tasks.Request{Coll: tasks.Barrier}, "barrier", 0},
		{tasks.Request{Coll: tasks.Reduce, Count: 3, Type: tasks.Float64, Op: tasks.Sum, Root: 2}, "reduce 3 f64 sum root 2", 24},
		{tasks.Request{Coll: tasks.Allgather, Count: 3, Type: tasks.Float64}, "allgather 3 f64", 24},
		{tasks.Request{Coll: tasks.Gather, Count: 3, Type: tasks.Float64, Root: 1}, "gather 3 f64 root 1", 24},
	} {
		if got := tc.r.String(); got != tc.want || tc.r.Bytes() != tc.bytes {
			t.Errorf("got %q of %d bytes, want %q of %d", got, tc.r.Bytes(), tc.want, tc.bytes)
		}
	}
}

// Buffers with a root are of its side as large as all blocks, or as the vector; elsewhere as what the rank gives or gets.
func TestBuffersWithARoot(t *testing.T) {
	for coll, want := range map[tasks.Collective][2][2]int64{ // of the root, and of another rank: send, recv
		tasks.Bcast:   {{0, 12}, {0, 12}},
		tasks.Reduce:  {{12, 12}, {12, 0}},
		tasks.Gather:  {{12, 60}, {12, 0}},
		tasks.Scatter: {{60, 12}, {0, 12}},
	} {
		r := tasks.Request{Coll: coll, Count: 3, Type: tasks.Float32, Op: tasks.Sum, Root: 2}
		var got [2][2]int64
		got[0][0], got[0][1] = r.Buffers(2, 5)
		if got[1][0], got[1][1] = r.Buffers(0, 5); got != want {
			t.Errorf("%v: buffers of %d bytes, want %d", coll, got, want)
		}
	}
}

// TestAllBytes: a buffer of blocks ends with the last rank's.
func TestAllBytes(t *testing.T) {
	differ, err := tasks.NewCounts([]int{2, 0, 5, 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		r    tasks.Request
		want int64
	}{
		{tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int16}, 3 * 2},
		{tasks.Request{Coll: tasks.Gather, Count: 3, Type: tasks.Int16}, 4 * 3 * 2},
		{tasks.Request{Coll: tasks.Scatter, Count: 3, Pitch: 10, Type: tasks.Int16}, (3*10 + 3) * 2},
		{tasks.Request{Coll: tasks.Scatter, Pitch: 10, Type: tasks.Int16}, 0},
		{tasks.Request{Coll: tasks.Allgather, Count: 5, Counts: differ, Type: tasks.Int16}, 8 * 2},
		{tasks.Request{Coll: tasks.Barrier}, 0},
	} {
		if got := tc.r.AllBytes(4); got != tc.want {
			t.Errorf("%v: %d bytes, want %d", tc.r, got, tc.want)
		}
		mean := tc.r.Bytes()
		if tc.r.Counts == differ {
			mean = 4 // two elements, of 2+0+5+1 for four ranks
		}
		if got := tc.r.MeanBytes(); got != mean {
			t.Errorf("%v: a block has %d bytes, want %d", tc.r, got, mean)
		}
	}
}
