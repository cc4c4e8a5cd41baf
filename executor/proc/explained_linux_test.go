package proc

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// leftJob is the control plane of a job in which rank 2 has died and rank 1 has left because of that. The news of the goodbye
// comes before that of the death.
type leftJob struct {
	executor.ControlPlane
	lost func(levels.Rank, error)
}

var errLeft = errors.New("has left the job")

func (j *leftJob) OnLost(handler func(levels.Rank, error))    { j.lost = handler }
func (j *leftJob) OnControl(func(levels.Rank, uint8, []byte)) {}
func (j *leftJob) Accept(func(levels.Rank, uint8, net.Conn))  {}
func (j *leftJob) DialUnix(context.Context, levels.Rank, uint8) (*net.UnixConn, error) {
	time.AfterFunc(50*time.Millisecond, func() { j.lost(2, errors.New("was killed")) })
	return nil, errLeft
}

// Who can't reach a rank because it has left names the one whose death it left for.
func TestLeftBecauseOfAnother(t *testing.T) {
	_, err := New(t.Context(), &leftJob{}, 0, tasktest.Topology(t, "a:2,b:1"), Config{})
	if p, ok := errors.AsType[*executor.PeerError](err); !ok || p.Rank != 2 {
		t.Errorf("%v, want an error that names rank 2", err)
	}
}
