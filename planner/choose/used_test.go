package choose

import (
	"testing"

	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// A forced word is used where a plan's shape has a task for it, or where no shape has one.
func TestUsed(t *testing.T) {
	sum := tasks.Request{Coll: tasks.Allreduce, Count: 1024, Type: tasks.Float32, Op: tasks.Sum}
	q, err := Ask(sum, tasktest.Topology(t, "4x2"), all.Submodules(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key, shape string
		has, used  bool
	}{
		{"i", "han", true, true},
		{"s", "han", true, true},
		{"ib", "han", true, true},
		{"iar", "han", false, false},
		{"iar", "ar", true, true},
		{"ib", "ar", false, false},
		{"ig", "han", false, true},
		{"w", "han", false, true},
	} {
		p := tasktest.Plan(t, "fs=all,w=1,i=adapt/chain,s=sm,shape="+test.shape)
		if has, used := q.has(test.key, p), q.isUsed(test.key, p); has != test.has || used != test.used {
			t.Errorf("%s in shape %s: it has a task %t, is used %t", test.key, test.shape, has, used)
		}
	}
	if q.has("i", tasks.Plan{}) {
		t.Error("a plan that can't be has a task")
	}
}
