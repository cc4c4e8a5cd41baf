package planner

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/launcher"
)

// world is a job, shared by its ranks in this process. It counts those not closed yet.
type world struct {
	*executor.World
	open   atomic.Int32
	log    *slog.Logger // for warnings that must not get lost
	quiet  func()       // ends dumps on SIGQUIT; nil without
	guest  *join.Job    // has the security of connections between nodes; nil: of goroutine ranks
	allocs sync.Map     // unsafe.Pointer of Alloc's memory → func() to free it

	tables sync.Mutex    // held to add to the table kept in a file
	calls  *callCounters // of rank 0; nil: nobody counts them
	nans   bool          // see [Options.CheckNaN]

	settings joinSettings
	name     jobName
	of       []said         // the ranks; nil: of goroutine ranks
	before   sync.WaitGroup // closes this world's predecessor
	whole    atomic.Bool    // all living ranks have been heard in this world

	door          *door.Door // nil: there is none
	doorRecording string     // file of its ranks' recordings unless the options name one; empty: none
}

// tellLeftOut tells the launcher of ranks of c that are no members any more, though their processes may run.
func (w *world) tellLeftOut(c *executor.Comm, lost []executor.Loss) {
	l := w.lobby()
	if l == nil {
		return
	}
	var lives []launcher.Life
	for _, one := range lost {
		if life := w.of[c.Ranks()[one.Rank]].Life; one.MayRun && life != nil {
			lives = append(lives, *life)
		}
	}
	if len(lives) == 0 {
		return
	}
	if err := l.LeaveOut(lives); err != nil {
		w.log.Warn("the launcher can't be told of ranks that were left out", "err", err)
	}
}

// joinSettings is the configuration of a rank's join, for joining again.
type joinSettings struct {
	config  join.Config
	options *Options
}

// lobby returns the processes waiting to join the job; nil: there are never any.
func (w *world) lobby() *launcher.Lobby { return w.settings.config.Lobby }
