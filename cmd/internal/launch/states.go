package launch

import (
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/tierflow/tierflow/levels/join/env"
)

// stateSignal is sent as a signal's name to ask ranks about their calls. It is none: an agent
// writes a byte into a pipe of each rank, and package planner answers on standard error, and
// keeps the ranks' traces. Other programs never hear of it.
const stateSignal = "STATE"

// stateGrace is how long ranks have to answer, traceGrace if they keep traces, too.
const (
	stateGrace = time.Second
	traceGrace = 5 * time.Second
)

// questions are an agent's pipes to ask its ranks. The zero value has none.
type questions struct{ outlets }

// add gives a process a pipe for questions before its start, and returns its end, to be closed
// once the process has inherited it. Without room for a pipe the end is nil, and the process is
// asked nothing.
func (q *questions) add(rank int, cmd *exec.Cmd) (theirs *os.File) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil
	}
	bequeath(cmd, env.StateFD, theirs)
	q.set(rank, ours)
	return theirs
}

// ask asks all ranks about their calls.
func (q *questions) ask() { q.write(everyRank, []byte{1}) }

// endInTime ends the job because its time is over. First it asks the ranks about their calls: it
// returns when to be called again, nil for never.
func (j *job) endInTime() <-chan time.Time {
	if j.released && !j.asked && j.failure == nil {
		j.asked = true
		j.sendAll(frame{Signal: stateSignal})
		if j.opts.TraceEvery > 0 {
			return j.after(traceGrace)
		}
		return j.after(stateGrace)
	}
	j.fail(statusTimeout, errors.New("the job was ended after "+j.opts.Timeout.String()+": "+j.progressText()))
	return nil
}
