package tasks_test

import (
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// In shape rotate the leader of the outermost groups moves on with each segment, the others' stay.
func TestRotate(t *testing.T) {
	const nodes, perNode, segments = 3, 2, 7
	for rank := range levels.Rank(nodes * perNode) {
		g := expand(t, request(tasks.Allreduce, segments), "3x2", "shape=rotate,fs=4,w=2", rank)
		for _, task := range g.Nodes() {
			want := rank / perNode * perNode
			if g.IsOutermost(&task) {
				want = levels.Rank(int(task.Segment) % nodes * perNode)
			}
			if got := task.Group.Lead(); got != want {
				t.Errorf("rank %d: %v is led by rank %d, want %d", rank, task, got, want)
			}
		}
	}
}
