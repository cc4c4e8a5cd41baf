package launch

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// stateSignal is sent as a signal's name to ask ranks what they are in. It is none: an
// agent writes a byte into a pipe of each rank, and package planner answers on standard
// error, and keeps the ranks' traces. Programs that don't use it never hear of it.
const stateSignal = "STATE"

// stateGrace is how long ranks have to answer, traceGrace if they keep traces, too.
const (
	stateGrace = time.Second
	traceGrace = 5 * time.Second
)

// questions are the pipes through which an agent asks its ranks. The zero value has none.
type questions struct {
	mu    sync.Mutex
	pipes map[int]*os.File // by rank
}

// bequeath lets a process that is not started yet inherit a file, whose descriptor a variable tells.
func bequeath(cmd *exec.Cmd, variable string, f *os.File) {
	cmd.Env = append(cmd.Env, variable+"="+strconv.Itoa(firstFD+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
}

// add gives a process that is not started yet a pipe, and returns its end, to be closed once the process has
// inherited it. Without room for one it is nil, and the process is asked nothing.
func (q *questions) add(rank int, cmd *exec.Cmd) (theirs *os.File) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil
	}
	bequeath(cmd, envState, theirs)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pipes == nil {
		q.pipes = map[int]*os.File{}
	}
	if before := q.pipes[rank]; before != nil {
		_ = before.Close()
	}
	q.pipes[rank] = ours
	return theirs
}

// ask asks all ranks. Those that have ended can't be.
func (q *questions) ask() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.pipes {
		_, _ = p.Write([]byte{1})
	}
}

// close ends the pipes.
func (q *questions) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.pipes {
		_ = p.Close()
	}
	q.pipes = nil
}

// endInTime ends the job because its time is over. First its ranks are asked what they are
// in: it returns when to be called again, nil for never.
func (j *job) endInTime() <-chan time.Time {
	if j.released && !j.asked && j.failure == nil {
		j.asked = true
		j.sendAll(frame{Signal: stateSignal})
		if j.opts.TraceEvery > 0 {
			return time.After(traceGrace)
		}
		return time.After(stateGrace)
	}
	j.fail(statusTimeout, errors.New("the job was ended after "+j.opts.Timeout.String()+": "+j.progressText()))
	return nil
}
