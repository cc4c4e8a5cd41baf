package tasks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// segmentBytes is the segment size of all cases here; buffers hold bytes.
const segmentBytes = 4

func request(coll tasks.Collective, segments int) tasks.Request {
	r := tasks.Request{Coll: coll, Count: int64(segments) * segmentBytes, Type: tasks.Uint8}
	if coll == tasks.Allreduce {
		r.Op = tasks.Sum
	}
	if coll == tasks.Barrier {
		return tasks.Request{Coll: coll}
	}
	return r
}

func expand(t testing.TB, r tasks.Request, spec, plan string, rank levels.Rank) *tasks.Graph {
	t.Helper()
	p := tasktest.Plan(t, plan)
	g, err := tasks.Expand(r, tasktest.Topology(t, spec), p, rank)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// stages writes the stages of one rank as names, "." for those in which it has
// nothing to do.
func stages(t testing.TB, g *tasks.Graph) string {
	t.Helper()
	all, err := g.Stages()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		for len(names) < s.Index {
			names = append(names, ".")
		}
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// TestStagesOfThePaper is figures 1 and 5 of the paper: four nodes of two ranks,
// rank 0 the root; leaders are the even ranks. For u up to 3 some of the paper's
// kinds have no segment to appear with.
func TestStagesOfThePaper(t *testing.T) {
	for _, tc := range []struct {
		coll           tasks.Collective
		u              int
		leader, member string
	}{
		{tasks.Bcast, 1, "ib sb", ". sb"},
		{tasks.Bcast, 2, "ib sbib sb", ". sb sb"},
		{tasks.Bcast, 3, "ib sbib sbib sb", ". sb sb sb"},
		{tasks.Bcast, 4, "ib sbib sbib sbib sb", ". sb sb sb sb"},
		{tasks.Bcast, 8, "ib sbib sbib sbib sbib sbib sbib sbib sb", ". sb sb sb sb sb sb sb sb"},

		{tasks.Allreduce, 1, "sr ir ib sb", "sr . . sb"},
		{tasks.Allreduce, 2, "sr irsr ibir sbib sb", "sr sr . sb sb"},
		{tasks.Allreduce, 3, "sr irsr ibirsr sbibir sbib sb", "sr sr sr sb sb sb"},
		{tasks.Allreduce, 4, "sr irsr ibirsr sbibirsr sbibir sbib sb", "sr sr sr sbsr sb sb sb"},
		{
			tasks.Allreduce, 8,
			"sr irsr ibirsr sbibirsr sbibirsr sbibirsr sbibirsr sbibirsr sbibir sbib sb",
			"sr sr sr sbsr sbsr sbsr sbsr sbsr sb sb sb",
		},
	} {
		t.Run(fmt.Sprintf("%v/u=%d", tc.coll, tc.u), func(t *testing.T) {
			for rank := range levels.Rank(8) {
				want := tc.leader
				if rank%2 == 1 {
					want = tc.member
				}
				// The window bounds what may be in flight, not what a stage is.
				for _, w := range []int{1, 4, 1024} {
					g := expand(t, request(tc.coll, tc.u), "4x2", fmt.Sprintf("shape=han,fs=%d,w=%d", segmentBytes, w), rank)
					if got := stages(t, g); got != want {
						t.Errorf("rank %d, w=%d: got %s, want %s", rank, w, got, want)
					}
				}
			}
		})
	}
}

// TestStages shows layouts that the paper doesn't draw, two segments each.
func TestStages(t *testing.T) {
	const leader, member = "sr irsr ibir sbib sb", "sr sr . sb sb"
	for _, tc := range []struct {
		name  string
		topo  string
		shape string
		coll  tasks.Collective
		root  levels.Rank
		want  []string // by rank
	}{
		{"three levels", "2x2x2", "han", tasks.Allreduce, 0, []string{
			"mr srmr irsr ibir sbib mbsb mb", "mr mr . . . mb mb",
			"mr srmr sr . sb mbsb mb", "mr mr . . . mb mb",
			"mr srmr irsr ibir sbib mbsb mb", "mr mr . . . mb mb",
			"mr srmr sr . sb mbsb mb", "mr mr . . . mb mb",
		}},
		{"three levels down", "2x2x2", "han", tasks.Bcast, 3, []string{
			". sb mbsb mb", ". . mb mb", ". . mb mb", "ib sbib mbsb mb",
			"ib sbib mbsb mb", ". . mb mb", ". sb mbsb mb", ". . mb mb",
		}},
		// The only rank of node b has no sr and no sb.
		{"unequal nodes", "a:3,b:1,c:2", "han", tasks.Allreduce, 0, []string{
			leader, member, member, ". ir ibir ib", leader, member,
		}},
		{"interleaved", "4x2/rr", "han", tasks.Allreduce, 0, []string{
			leader, leader, leader, leader, member, member, member, member,
		}},
		{"the root leads", "4x2/rr", "han", tasks.Bcast, 5, []string{
			"ib sbib sb", ". sb sb", "ib sbib sb", "ib sbib sb", ". sb sb", "ib sbib sb", ". sb sb", ". sb sb",
		}},
		{"one node", "3", "han", tasks.Allreduce, 0, []string{"sr sbsr sb", "sr sbsr sb", "sr sbsr sb"}},
		{"one node of a machine with more levels", "1x3", "han", tasks.Bcast, 1, []string{"sb sb", "sb sb", "sb sb"}},
		{"one rank per node", "3x1", "han", tasks.Allreduce, 0, []string{"ir ibir ib", "ir ibir ib", "ir ibir ib"}},
		{"flat", "a:2,b:1", "flat", tasks.Allreduce, 0, []string{"ir ibir ib", "ir ibir ib", "ir ibir ib"}},
		{"flat on one node", "2", "flat", tasks.Bcast, 0, []string{"sb sb", "sb sb"}},
		{"one rank copies", "1", "han", tasks.Allreduce, 0, []string{"sr sr"}},
		{"one rank of a machine with more levels copies", "1x1", "han", tasks.Allreduce, 0, []string{"ir ir"}},
		{"one rank has it", "1", "han", tasks.Bcast, 0, []string{""}},
		{"one rank waits for nobody", "1x1", "han", tasks.Barrier, 0, []string{""}},
		{"barrier", "2x2", "han", tasks.Barrier, 0, []string{"sr ir ib sb", "sr . . sb", "sr ir ib sb", "sr . . sb"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := request(tc.coll, 2)
			r.Root = tc.root
			var got []string
			for rank := range tc.want {
				got = append(got, stages(t, expand(t, r, tc.topo, "w=2,fs=4B,shape="+tc.shape, levels.Rank(rank))))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("stages by rank (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStageTasks holds the ids: latest phase first, one task of a segment each.
func TestStageTasks(t *testing.T) {
	g := expand(t, request(tasks.Allreduce, 4), "4x2", "shape=han,fs=4B,w=4", 2)
	all, err := g.Stages()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range all {
		var labels []string
		for _, id := range s.Tasks {
			labels = append(labels, g.Node(id).String())
		}
		got = append(got, strings.Join(labels, " "))
	}
	want := []string{
		"sr#0", "ir#0 sr#1", "ib#0 ir#1 sr#2", "sb#0 ib#1 ir#2 sr#3", "sb#1 ib#2 ir#3", "sb#2 ib#3", "sb#3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tasks by stage (-want +got):\n%s", diff)
	}
}
