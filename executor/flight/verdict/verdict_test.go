package verdict

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
)

// in is a rank that waits for others in a collective.
func in(rank int, what string, seq uint32, peers ...int) flight.State {
	return flight.State{Rank: rank, Doing: flight.Inside, Called: []flight.Called{{Calls: seq + 1}}, Open: []flight.Open{
		{Seq: seq, What: what, Waits: "ib#0 recv", Peers: peers, For: 12 * time.Second, Awaited: true},
	}}
}

// receives is a rank that waits for another one's message.
func receives(rank, from int) flight.State {
	s := in(rank, fmt.Sprintf("receive from rank %d, tag 5", from), 0, from)
	s.Open[0].Transfer = true
	return s
}

// out is a rank that has made some calls and is in none.
func out(rank int, calls uint32) flight.State {
	return flight.State{
		Rank: rank, Doing: flight.Outside, At: "main.load load.go:88", Called: []flight.Called{{Calls: calls}},
		Last: "barrier #6", Since: 13 * time.Second,
	}
}

// elsewhere is out, in a call of another library.
func elsewhere(rank int, calls uint32, call string) flight.State {
	s := out(rank, calls)
	s.Elsewhere = &flight.Elsewhere{Call: call, For: 12 * time.Second}
	return s
}

func doing(rank int, d flight.Doing) flight.State {
	return flight.State{Rank: rank, Doing: d, PID: 100 + rank}
}

// computes lets a rank be in an operation, for none of its open calls.
func computes(s flight.State) flight.State {
	s.Doing, s.PID = flight.Computing, 100+s.Rank
	return s
}

// operates lets a rank be in an operation for its open call.
func operates(s flight.State) flight.State {
	s.Open[0].Operating = true
	return computes(s)
}

// started lets a rank be in an operation for a call that it has started and not waited for.
func started(s flight.State) flight.State {
	s.Open = append(s.Open, flight.Open{Comm: 1, What: "reduce", Operating: true})
	return computes(s)
}

func moved(s flight.State) flight.State {
	s.Open[0].For = 0
	return s
}

func failed(s flight.State, f flight.Failed) flight.State {
	s.Failed = &f
	return s
}

func ExampleDiagnose() {
	for _, f := range Diagnose([]flight.State{in(0, "barrier", 7, 1), in(1, "barrier", 7, 2), out(2, 7)}, Options{}) {
		fmt.Println(&f)
	}
	// Output: late: rank 2 has not come to barrier #7 for 12 s; it is in main.load load.go:88
}

// checkFinding wants a finding that begins so, none if that is empty.
func checkFinding(t *testing.T, name any, f *Finding, want string) {
	t.Helper()
	got := ""
	if f != nil {
		got = f.String()
	}
	if !strings.HasPrefix(got, want) || want == "" && got != "" {
		t.Errorf("%v: %q, want %q", name, got, want)
	}
}

func TestDiagnose(t *testing.T) {
	nodes := []string{"a", "a", "b", "b", "c"}
	for _, test := range []struct {
		name   string
		states []flight.State
		want   string // of the first finding; empty: there is none
	}{
		{"all move", []flight.State{moved(in(0, "barrier", 7, 1)), out(1, 7)}, ""},
		{"all outside", []flight.State{out(0, 7), out(1, 7)}, ""},
		{"nobody waits for who has ended its part", []flight.State{out(0, 8), moved(in(1, "bcast", 7, 0))}, ""},
		{
			"late, in another library",
			[]flight.State{in(0, "barrier", 7, 1), elsewhere(1, 7, "MPI_Recv")},
			"late: rank 1 has not come to barrier #7 for 12 s; it is in MPI_Recv, for 12.0 s, at main.load load.go:88",
		},
		{
			"late, seen through others",
			[]flight.State{in(0, "barrier", 7, 1), in(1, "barrier", 7, 2), in(2, "barrier", 7, 3), out(3, 7)},
			"late: rank 3 has not come to barrier #7 for 12 s; it is in main.load",
		},
		{
			"late in a receive",
			[]flight.State{receives(0, 1), out(1, 7)},
			"late: rank 1 has not come to a receive from rank 1, tag 5 for 12 s",
		},
		{
			"several late",
			[]flight.State{in(0, "barrier", 7, 1, 2), out(1, 7), out(2, 7)},
			"late: rank 1 has not come to barrier #7 for 12 s; it is in main.load load.go:88; rank 2 has not come",
		},
		{
			"late, behind one that has just come",
			[]flight.State{in(0, "barrier", 7, 1), moved(in(1, "barrier", 7, 2)), out(2, 7)},
			"late: rank 2 has not come to barrier #7 for 12 s; it is in main.load",
		},
		{
			"stopped before late",
			[]flight.State{in(0, "barrier", 7, 1, 2), doing(1, flight.Stopped), out(2, 7)},
			"stopped: rank 1 (a, process 101) is stopped",
		},
		{
			"seen by a neighbor",
			[]flight.State{in(0, "barrier", 7, 3), {Rank: 2, Doing: flight.Outside, Near: []flight.State{doing(3, flight.Stopped)}}, doing(3, flight.Silent)},
			"stopped: rank 3 (b, process 103)",
		},
		{
			"a rank's own word counts",
			[]flight.State{out(1, 7), {Rank: 0, Doing: flight.Outside, Near: []flight.State{doing(1, flight.Stopped)}}},
			"",
		},
		{"dead", []flight.State{in(0, "barrier", 7, 1), doing(1, flight.Gone)}, "died: rank 1 (a, process 101) has ended"},
		{"silent", []flight.State{out(0, 7), out(1, 7), out(2, 7), doing(3, flight.Silent)}, "unreachable: rank 3 does not answer"},
		{
			"stopped, and another one is slow to answer",
			[]flight.State{in(0, "barrier", 7, 2), doing(1, flight.Silent), doing(2, flight.Stopped), in(3, "barrier", 7, 0)},
			"stopped: rank 2 (b, process 102) is stopped, by SIGSTOP or a debugger; its last word: stopped",
		},
		{
			"stopped, and another one that is awaited can't be reached",
			[]flight.State{in(0, "barrier", 7, 2), doing(1, flight.Silent), doing(2, flight.Stopped), in(3, "barrier", 7, 1)},
			"unreachable: rank 1 does not answer",
		},
		{
			"a node",
			[]flight.State{out(0, 7), out(1, 7), doing(2, flight.Silent), doing(3, flight.Silent)},
			"unreachable: b cut off: ranks 2 and 3 don't answer",
		},
		{
			"mismatch",
			[]flight.State{in(0, "bcast", 7, 1), in(1, "bcast", 7, 0), in(2, "reduce", 7, 0), out(3, 8)},
			"mismatch: as call #7 rank 2 runs reduce, ranks 0 and 1 run bcast",
		},
		{"computing", []flight.State{in(0, "reduce", 7, 1), doing(1, flight.Computing)}, "computing: rank 1 (a, process 101) is in an operation of its program while rank 0 waits for it"},
		{
			"computing, and further on",
			[]flight.State{in(0, "reduce", 7, 1), operates(in(1, "reduce", 7, 0)), in(2, "reduce", 7, 0)},
			"computing: rank 1 (a, process 101) is in an operation of its program while rank 0 waits for it",
		},
		{
			"computing for another call",
			[]flight.State{in(0, "barrier", 7, 1), computes(in(1, "barrier", 7, 2)), out(2, 7)},
			"late: rank 2 has not come to barrier #7 for 12 s; it is in main.load",
		},
		{
			"computing for a call only started",
			[]flight.State{in(0, "barrier", 7, 1), started(receives(1, 2)), out(2, 8)},
			"late: rank 2 has not come to a receive from rank 2, tag 5 for 12 s; it is in main.load",
		},
		{"deadlock", []flight.State{receives(0, 1), receives(1, 0)}, "deadlock: rank 0 is in receive from rank 1, tag 5, for 12.0 s; rank 1 is in receive from rank 0"},
		{"no bytes", []flight.State{in(0, "barrier", 7, 1), in(1, "barrier", 7, 0)}, "slow link: no bytes come between ranks 0 and 1 in barrier #7 for 12 s"},
		{"bytes on their way", []flight.State{out(0, 8), in(1, "bcast", 7, 0)}, "slow link: rank 1 waits for bytes of rank 0 in bcast #7 for 12 s"},
		{
			"failures",
			[]flight.State{failed(out(0, 7), flight.Failed{Rank: 3, Text: "rank 3 failed: was lost", Kind: "died"}), failed(out(1, 7), flight.Failed{Rank: 3, Text: "rank 3 failed: was lost", Kind: "died"})},
			"died: rank 3 failed: was lost",
		},
		{
			"a failure, and the loss of a rank that was ended because of it",
			[]flight.State{
				failed(out(1, 7), flight.Failed{Rank: 0, Text: "rank 0 failed: was lost", Kind: "died", Ago: time.Millisecond}),
				failed(out(3, 7), flight.Failed{Rank: 2, Text: "rank 2 failed: was lost", Kind: "died", Ago: 5 * time.Millisecond}),
			},
			"died: rank 2 failed: was lost",
		},
		{
			"the loss of a rank that had met a failure itself",
			[]flight.State{
				failed(out(0, 7), flight.Failed{Rank: 1, Text: "rank 1 failed: was lost", Kind: "died", Ago: 5 * time.Millisecond}),
				failed(out(1, 7), flight.Failed{Rank: 2, Text: "rank 2 failed: was lost", Kind: "died", Ago: time.Millisecond}), // by another clock
			},
			"died: rank 2 failed: was lost",
		},
		{
			"the smaller side of a cut",
			[]flight.State{
				failed(out(0, 7), flight.Failed{Rank: 2, Text: "rank 2 timed out", Kind: "unreachable"}),
				failed(out(1, 7), flight.Failed{Rank: 2, Text: "rank 2 timed out", Kind: "unreachable"}),
				failed(out(3, 7), flight.Failed{Rank: 2, Text: "rank 2 was lost", Kind: "died"}),
			},
			"unreachable: rank 2 timed out",
		},
		{
			"one side of a cut",
			[]flight.State{
				failed(out(0, 7), flight.Failed{Rank: 1, Text: "rank 1 was lost", Kind: "resources"}),
				failed(out(3, 7), flight.Failed{Rank: 0, Text: "rank 0 timed out", Kind: "unreachable"}),
			},
			"unreachable: rank 0 timed out; nobody but b says so",
		},
		{"a failure of no class", []flight.State{failed(out(0, 7), flight.Failed{Text: "cancelled"})}, ""},
	} {
		found := Diagnose(test.states, Options{Nodes: nodes})
		var first *Finding
		if len(found) > 0 {
			first = &found[0]
		}
		checkFinding(t, test.name, first, test.want)
		for i := range found {
			if len(found[i].Ranks) == 0 {
				t.Errorf("%s: %v blames no rank", test.name, &found[i])
			}
		}
	}
}

// What is told twice is found once.
func TestFailuresAreToldOnce(t *testing.T) {
	f := flight.Failed{Rank: 1, Text: "x", Kind: "died"}
	if found := Diagnose([]flight.State{failed(out(0, 1), f), failed(out(2, 1), f), doing(1, flight.Gone)}, Options{}); len(found) != 1 {
		t.Errorf("%v", found)
	}
}

// Who waits in Close for others hears which of them have not come.
func TestUnclosed(t *testing.T) {
	closed := func(rank int) flight.State { return doing(rank, flight.Left) }
	for _, test := range []struct {
		name   string
		states []flight.State
		want   string
	}{
		{"all close", []flight.State{closed(0), closed(1)}, ""},
		{"one is stopped", []flight.State{closed(0), doing(1, flight.Stopped), closed(2)}, "stopped: rank 1 (a, process 101) is stopped"},
		{"one is elsewhere", []flight.State{closed(0), out(1, 7), closed(2)}, "late: rank 1 has not come to Close for 11 s; it is in main.load load.go:88"},
		{"one can't be asked", []flight.State{closed(0), doing(2, flight.Silent)}, "late: rank 2 has not come to Close for 11 s"},
		{"who can't be asked is behind another one", []flight.State{closed(0), out(1, 7), doing(2, flight.Silent)}, "late: rank 1 has not come to Close for 11 s; it is in main.load load.go:88"},
		{"stopped, and others behind it", []flight.State{doing(0, flight.Stopped), closed(1), doing(2, flight.Silent)}, "stopped: rank 0"},
		{"two of several", []flight.State{closed(0), out(1, 7), doing(2, flight.Gone), out(3, 7)}, "died: rank 2 (b, process 102) has ended"},
	} {
		checkFinding(t, test.name, Unclosed(test.states, Options{Nodes: []string{"a", "a", "b", "b"}}, 11*time.Second), test.want)
	}
}

// Ranks that have closed their communicator are nobody's trouble.
func TestClosedRanksAreFine(t *testing.T) {
	if found := Diagnose([]flight.State{doing(0, flight.Left), doing(1, flight.Left), out(2, 7)}, Options{}); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

func TestClassesHaveNames(t *testing.T) {
	for c := Died; c < maxClass; c++ {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again Class
		if err := json.Unmarshal(text, &again); err != nil || again != c || strings.Contains(c.String(), "class(") {
			t.Errorf("%d is %s, read again %v: %v", c, text, again, err)
		}
	}
	var c Class
	if err := c.UnmarshalText([]byte("tired")); err == nil {
		t.Error("tired is a class")
	}
}

func TestStraggler(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		waited []time.Duration
		want   string
	}{
		{[]time.Duration{700 * ms, 20 * ms, 800 * ms, 750 * ms}, "slow rank: rank 1 holds up the others, which wait for 75 % of the time; it waits for 2 %"},
		{[]time.Duration{700 * ms, 600 * ms, 800 * ms, 750 * ms}, ""},
		{[]time.Duration{100 * ms, 1 * ms, 100 * ms, 100 * ms}, ""}, // nobody waits much
		{[]time.Duration{700 * ms, 20 * ms}, "slow rank: rank 1 holds up the other, which waits for 70 % of the time; it waits for 2 %"},
		{[]time.Duration{700 * ms, 300 * ms}, ""},
		{[]time.Duration{700 * ms, -1, 800 * ms, 750 * ms}, ""},
		{[]time.Duration{700 * ms, 1 * ms, 2 * ms, 900 * ms, 800 * ms}, "slow rank: ranks 1 and 2 hold up the others, which wait for 80 % of the time; they wait for 0 %"},
		{[]time.Duration{700 * ms, 1 * ms, 800 * ms, 2 * ms}, ""}, // half of them: the leaders
		{ // leaders wait for less than the others, and for more than the slow one
			[]time.Duration{660 * ms, 850 * ms, 660 * ms, 850 * ms, 660 * ms, 150 * ms, 660 * ms, 850 * ms},
			"slow rank: rank 5 holds up the others, which wait for 66 % of the time; it waits for 15 %",
		},
	} {
		checkFinding(t, test.waited, Straggler(test.waited, time.Second, nil), test.want)
	}
}

func TestBottleneck(t *testing.T) {
	nodes := []string{"a", "a", "b", "c"}
	const slow, fast = 6e6, 110e6
	flow := func(from, to int, rate float64) Flow { return Flow{from, to, rate, rate, true, 0.9} }
	little := func(from, to int, rate float64) Flow { return Flow{from, to, rate, rate, false, 0.9} }
	for _, test := range []struct {
		name  string
		flows []Flow
		want  string
	}{
		{"nothing passes", nil, ""},
		{"all alike", []Flow{flow(0, 2, 90e6), flow(2, 3, fast), flow(3, 0, 70e6)}, ""},
		{"a node sends slowly", []Flow{flow(2, 0, slow), flow(2, 3, 5e6), flow(0, 2, fast), flow(0, 3, fast), flow(3, 0, fast)}, "slow link: the network of b carries 6 MB/s, others up to 110 MB/s"},
		{"there and back", []Flow{flow(2, 0, slow), flow(0, 3, fast), flow(1, 2, 5e6), flow(3, 2, fast)}, "slow link: the network between a and b carries 6 MB/s"},
		{"what goes back is slower still", []Flow{flow(2, 0, slow), flow(0, 3, fast), flow(1, 2, 1e6), flow(3, 2, fast)}, "slow link: the network between a and b carries 1 MB/s"},
		{"one way", []Flow{flow(2, 0, slow), flow(0, 2, fast)}, "slow link: the network from b to a carries"},
		{"what another rank says is of long ago", []Flow{flow(2, 0, slow), {2, 1, fast, fast, true, 0.01}, flow(0, 2, fast)}, "slow link: the network from b to a carries"},
		{"little is sent", []Flow{little(2, 0, slow), flow(0, 2, fast)}, ""},
		{"little is sent on another way", []Flow{little(3, 0, 1e6), flow(2, 0, slow), flow(0, 2, fast)}, "slow link: the network from b to a carries"},
		{"nobody waits for it", []Flow{{2, 0, slow, slow, true, 0.01}, flow(0, 2, fast)}, ""},
		{"nothing in common", []Flow{flow(2, 0, slow), flow(3, 2, slow), flow(0, 3, slow), flow(0, 2, fast)}, ""},
		{"short bursts look fast", []Flow{{2, 0, 130e6, 60e6, true, 0.9}, {0, 2, 370e6, 80e6, true, 0.5}}, ""},
		{"unknown ranks", []Flow{flow(9, 0, slow), flow(-1, 2, fast)}, ""},
	} {
		f := Bottleneck(test.flows, nil, nodes, false)
		checkFinding(t, test.name, f, test.want)
		if f != nil && len(f.Ranks) == 0 {
			t.Errorf("%s: no ranks", test.name)
		}
	}
}

// Bursts tell of a slow network by their arrival, where senders notice nothing.
func TestBottleneckOfBursts(t *testing.T) {
	nodes := []string{"a", "a", "b", "c"}
	left := []Flow{{2, 0, 1200e6, 5e6, false, 0.9}, {0, 2, 1300e6, 9e6, false, 0.1}}
	pace := func(from, to int, rate, busy float64) Flow { return Flow{from, to, rate, 0.9 * rate, true, busy} }
	fine := []Flow{pace(2, 3, 160e6, 0.01), pace(3, 2, 150e6, 0.01)}
	for _, test := range []struct {
		name    string
		arrived []Flow
		crowded bool
		want    string
	}{
		{"a node sends slowly", append(fine, pace(2, 0, 6e6, 0.1)), false, "slow link: the network from b to a carries 6 MB/s, others up to 144 MB/s"},
		{"it hardly sends", append(fine, pace(2, 0, 6e6, 0.01)), false, ""},
		{"its processes are woken late", append(fine, pace(2, 0, 60e6, 0.1)), false, ""},
		{"nothing to compare with", []Flow{pace(2, 0, 6e6, 0.1)}, false, ""},
		{"too few processors to tell", append(fine, pace(2, 0, 20e6, 0.1)), true, ""},
		{"too few processors, and still clear", append(fine, pace(2, 0, 6e6, 0.1)), true, "slow link: the network from b to a carries 6 MB/s, others up to 144 MB/s"},
	} {
		got := ""
		if f := Bottleneck(left, test.arrived, nodes, test.crowded); f != nil {
			got = f.String()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// Beside a way that carries much all day, little that goes the other way takes long, and bursts towards the node look
// fast: the ways of other nodes tell. The rates are of a ring of four nodes, one with a tenth of the others' network.
func TestBottleneckOfANode(t *testing.T) {
	nodes := []string{"a", "a", "b", "b", "c", "c", "d", "d"}
	ring := func(full bool, rate float64) []Flow {
		return []Flow{
			{0, 2, 1450e6, 110e6, false, 0.11},
			{0, 6, 174e6, 0.1e6, false, 0.22},
			{2, 0, 145e6, 0.1e6, false, 0.19},
			{2, 4, 81e6, 13e6, false, 0.89},
			{4, 2, 0.4e6, 0.03e6, false, 0.71},
			{4, 6, rate, rate, full, 1},
			{6, 0, 2170e6, 200e6, false, 0.06},
			{6, 4, 181e6, 0.03e6, false, 0.68},
		}
	}
	for _, test := range []struct {
		name string
		left []Flow
		want string
	}{
		{"a slow node", ring(true, 11.5e6), "slow link: the network of c carries 11.5 MB/s, others up to 200 MB/s"},
		{"there is little to send", ring(false, 11.5e6), ""},
		{"not so slow", ring(true, 20e6), ""},
		{"few others", ring(true, 11.5e6)[3:6], ""},
	} {
		checkFinding(t, test.name, Bottleneck(test.left, nil, nodes, true), test.want)
	}
}
