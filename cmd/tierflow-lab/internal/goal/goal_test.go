package goal_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/goal"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// programs compiles a request for all ranks.
func programs(t testing.TB, r tasks.Request, topo *levels.Topology, p tasks.Plan) []submodules.Compiled {
	t.Helper()
	progs := make([]submodules.Compiled, topo.Size())
	for rank := range progs {
		var err error
		if progs[rank], err = submodules.CompileRequest(r, topo, p, levels.Rank(rank), all.Submodules()); err != nil {
			t.Fatal(err)
		}
	}
	return progs
}

func problem(t testing.TB, r tasks.Request, topo, plan string) (tasks.Request, *levels.Topology, tasks.Plan) {
	t.Helper()
	on := tasktest.Topology(t, topo)
	p := tasktest.Plan(t, plan)
	return r, on, p
}

// Whatever the program: what is written is read again, and says what the program does. All
// that can't be said names a step.
func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	said, unsaid := 0, 0
	for range 200 {
		c := casegen.Options{MaxRanks: 9, Registry: all.Submodules()}.Draw(random)
		progs := make([]submodules.Compiled, c.Topology.Size())
		steps := 0
		for rank := range progs {
			var err error
			if progs[rank], err = submodules.CompileRequest(c.Request, c.Topology, c.Plan, levels.Rank(rank), all.Submodules()); err != nil {
				break
			}
			for _, p := range []*submodules.Program{progs[rank].Whole, progs[rank].Rest} {
				if p != nil {
					steps += p.Len()
				}
			}
		}
		if progs[len(progs)-1].Rest == nil && progs[len(progs)-1].Whole == nil || progs[0].Passes > 3 || steps > 20_000 {
			continue
		}
		s, err := goal.FromPrograms(progs, machine.Assumed())
		if err != nil {
			unsaid++
			if !errors.Is(err, goal.ErrUnsaid) || !strings.Contains(err.Error(), "#") {
				t.Errorf("%v: %v", c, err)
			}
			continue
		}
		said++
		again, err := goal.Parse("test.goal", s.Format())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%v: read again: %v\n%s", c, err, s.Format())
		}
		checkSchedule(t, c, s, progs)
	}
	if said < 20 || unsaid < 5 {
		t.Errorf("%d schedules said, %d not", said, unsaid)
	}
}

// checkSchedule checks that messages meet, that nothing waits for what comes later, and that
// steps become ops one by one.
func checkSchedule(t *testing.T, c casegen.Case, s *goal.Schedule, progs []submodules.Compiled) {
	t.Helper()
	type message struct {
		from, to levels.Rank
		tag      int64
	}
	open := map[message]int64{} // bytes, and one more, less what is received
	for rank, ops := range s.Ranks {
		want := 0
		for i, p := range []*submodules.Program{progs[rank].Whole, progs[rank].Rest} {
			if times := []int{int(progs[rank].Passes), 1}[i]; p != nil && p.Len() > 0 {
				want += times * (p.Len() + 1)
			}
		}
		if len(ops) != want {
			t.Errorf("%v: rank %d has %d ops, want %d", c, rank, len(ops), want)
		}
		for i, op := range ops {
			for _, before := range op.After {
				if int(before) >= i {
					t.Errorf("%v: rank %d: op %d after op %d", c, rank, i, before)
				}
			}
			switch op.Kind {
			case goal.Send:
				open[message{levels.Rank(rank), op.Peer, op.Tag}] += op.Size + 1
			case goal.Recv:
				open[message{op.Peer, levels.Rank(rank), op.Tag}] -= op.Size + 1
			}
		}
	}
	for m, left := range open {
		if left != 0 {
			t.Errorf("%v: message %+v: %d bytes more sent than received", c, m, left)
		}
	}
}

func TestFormat(t *testing.T) {
	r, on, p := problem(t, tasks.Request{Coll: tasks.Reduce, Type: tasks.Float32, Op: tasks.Sum, Count: 1000}, "3x1", "shape=flat,fs=all,w=1,i=adapt/chain")
	s, err := goal.FromPrograms(programs(t, r, on, p), machine.Assumed())
	if err != nil {
		t.Fatal(err)
	}
	const want = `num_ranks 3

rank 0 {
l1: recv 4000b from 1 tag 0
l2: calc 650
l2 requires l1
l3: calc 0
l3 requires l2
}

rank 1 {
l1: recv 4000b from 2 tag 0
l2: calc 650
l2 requires l1
l3: send 4000b to 0 tag 0
l3 requires l2
l4: calc 0
l4 requires l3
}

rank 2 {
l1: send 4000b to 1 tag 0
l2: calc 0
l2 requires l1
}
`
	if got := string(s.Format()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestUnsaid(t *testing.T) {
	r, on, p := problem(t, tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: 100}, "1x2", "shape=han,fs=all,w=1,i=adapt/chain,s=sm")
	if _, err := goal.FromPrograms(programs(t, r, on, p), machine.Assumed()); !errors.Is(err, goal.ErrUnsaid) || !strings.Contains(err.Error(), "sb#0 ") {
		t.Error(err)
	}
}

// Schedules of others have other labels, comments and no tags.
func TestParse(t *testing.T) {
	s, err := goal.Parse("x", []byte("num_ranks 2 // of them\nrank 1 {\na1: recv 8b from 0\n}\nrank 0 {\r\n  first:  calc 7\n  second: send 8b to 1\n\tsecond requires first\n}\n"))
	want := &goal.Schedule{Ranks: [][]goal.Op{
		{{Kind: goal.Calc, Size: 7}, {Kind: goal.Send, Size: 8, Peer: 1, After: []int32{0}}},
		{{Kind: goal.Recv, Size: 8}},
	}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, test := range []struct{ text, want string }{
		{"rank 0 {", "x:1: \"rank 0 {\"; the first line is num_ranks"},
		{"num_ranks 0", "x:1: 0 ranks; allowed are 1 to"},
		{"num_ranks 99999999999999999999", "allowed are 1 to"},
		{"num_ranks 1\nrank 1 {", "x:2: rank 1 of 1"},
		{"num_ranks 1\nrank 0 {\n}\nrank 0 {", "x:4: rank 0 is there twice"},
		{"num_ranks 1\nrank 0 {\nl1: calc 5", "rank 0 is open"},
		{"num_ranks 1\nrank 0 {\nl1: send 5b from 0\n}", "x:3: "},
		{"num_ranks 1\nrank 0 {\nl1: calc 5 cpu 3\n}", "x:3: \"l1: calc 5 cpu 3\"; allowed are"},
		{"num_ranks 1\nrank 0 {\nl1: calc 5\nl1: calc 6\n}", "x:4: label l1 is there twice"},
		{"num_ranks 1\nrank 0 {\nl1: calc 5\nl1 requires l2\n}", "x:4: label l2 is not known"},
		{"num_ranks 1\nrank 0 {\nl1: calc 5\nl1 requires l1\n}", "x:4: l1 requires l1, which comes after it"},
		{"num_ranks 1\nrank 0 {\nl1: calc 99999999999999999999\n}", "out of range"},
		{"", "x: it ends before it is complete"},
	} {
		if _, err := goal.Parse("x", []byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %s", test.text, err, test.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 3\n}\nrank 1 {\nl1: recv 8b from 0 tag 3\nl2: calc 5\nl2 requires l1\n}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := goal.Parse("fuzz", text)
		if err != nil || len(s.Ranks) > 1000 {
			return
		}
		again, err := goal.Parse("again", s.Format())
		if err != nil || string(again.Format()) != string(s.Format()) {
			t.Errorf("%v\n%s", err, s.Format())
		}
	})
}
