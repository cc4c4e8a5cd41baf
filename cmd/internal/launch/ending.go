package launch

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels/ranges"
)

// termGrace is the time between SIGTERM and SIGKILL. It is a variable for tests of every rank's
// last word.
var termGrace = 500 * time.Millisecond

// killGrace is the time between SIGKILL and giving an agent up.
const killGrace = time.Second

// fail keeps the first failure and begins to end the job: SIGTERM for running ranks, the end of
// stdin for agents without any.
func (j *job) fail(status int, err error) {
	if j.failure != nil || j.finished {
		return
	}
	if status <= 0 || status > 255 {
		status = statusLauncher // an agent made it up
	}
	j.failure, j.status = err, status
	j.terminate()
}

// terminate ends the rest of a failed job.
func (j *job) terminate() {
	j.sparing = false
	if j.released {
		j.sendAll(frame{Signal: nameOf(syscall.SIGTERM)})
		j.force = time.After(termGrace)
		return
	}
	j.hangUpAll()
}

// endHarder takes the next step of ending a job that goes on: SIGTERM for all but the rank it began
// with, for that rank, SIGKILL, then giving the agents up.
func (j *job) endHarder() {
	switch {
	case j.sparing && !j.spared:
		j.spareOrigin()
	case j.sparing:
		j.terminate()
	case j.killed:
		for _, c := range j.conns {
			c.kill()
		}
		j.force = nil
	default:
		j.sendAll(frame{Signal: nameOf(syscall.SIGKILL)})
		j.hangUpAll()
	}
}

// hangUpAll ends all agents' stdin. The agents then kill their ranks.
func (j *job) hangUpAll() {
	j.killed = true
	j.force = time.After(killGrace)
	for _, c := range j.conns {
		c.hangUp()
	}
}

// isEnding reports whether a signal to the launcher ends the job.
func isEnding(s syscall.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP
}

// forward hands a signal to the ranks. One that ends the job gives them Options.Grace, and nobody is started again. Before
// there are ranks, and at a second SIGINT or SIGTERM, it ends the job at once. One more has its usual effect on the launcher.
func (j *job) forward(s os.Signal) {
	sig := s.(syscall.Signal)
	switch {
	case !j.released:
		j.fail(statusSignal+int(sig), fmt.Errorf("%v before the ranks were started", sig))
	case sig == j.ending && time.Since(j.interrupted) < echoTime: // such as timeout, which signals the launcher and then its group
	case j.ending != 0 && (sig == syscall.SIGINT || sig == syscall.SIGTERM):
		signal.Reset(syscall.SIGINT, syscall.SIGTERM)
		j.killRest(sig, "a second "+wordOf(sig))
	default:
		if isEnding(sig) && j.ending == 0 && !j.finished {
			j.ending, j.interrupted = sig, time.Now()
			j.closeLobby()
			j.patience = j.after(min(tellAfter, j.opts.Grace))
		}
		if isEnding(sig) || sig == syscall.SIGQUIT {
			j.signalled = sig
		}
		j.sendAll(frame{Signal: nameOf(sig)})
	}
}

// echoTime is within which the same signal is one: whoever sends it to a process and to its group, sends it twice.
const echoTime = 300 * time.Millisecond

// wordOf is a signal's name in a sentence.
func wordOf(s syscall.Signal) string {
	if s == syscall.SIGINT {
		return "interrupt"
	}
	return "SIG" + nameOf(s)
}

// tellAfter is how long after a signal that ends the job the launcher says for whom it waits.
const tellAfter = time.Second

// loseGrace says for whom an interrupted job waits, and later kills them.
func (j *job) loseGrace() {
	j.patience = nil
	switch {
	case j.failure != nil || j.finished: // they are being ended
	case j.told || j.opts.Grace <= tellAfter:
		j.killRest(j.ending, fmt.Sprintf("the launcher, %v after %s", j.opts.Grace, wordOf(j.ending)))
	default:
		j.told = true
		j.note(fmt.Sprintf("%v after %s %s, and %v are left; a second signal kills at once", tellAfter, wordOf(j.ending), j.progressText(), j.opts.Grace-tellAfter))
		j.patience = j.after(j.opts.Grace - tellAfter)
	}
}

// lastTime is how long the last rank may run alone before the launcher says so: it may hang, or be stopped.
const lastTime = 10 * time.Second

// tellLast says that one rank runs on alone in a job that nothing ends.
func (j *job) tellLast() {
	j.last = make(chan time.Time) // never again
	if j.failure != nil || j.ending != 0 {
		return
	}
	for _, c := range j.conns {
		for rank, pid := range c.pids {
			j.note(fmt.Sprintf("rank %d on %s, process %d, runs on, %v after all others have ended", rank, c.host, pid, lastTime))
		}
	}
}

// killRest ends an interrupted job now.
func (j *job) killRest(sig syscall.Signal, by string) {
	if j.failure == nil {
		j.first = nil // what it says is told by this
	}
	j.fail(statusSignal+int(sig), fmt.Errorf("killed by %s: %s", by, j.progressText()))
	if !j.killed {
		j.sparing = false
		j.endHarder()
	}
}

// interruption is the failure of a job whose ranks were told to end by a forwarded signal; nil: it has failed
// otherwise.
func (j *job) interruption() error {
	const panicked = 2 // the exit status of Go's panics
	sig := j.first.after
	if e := j.endings[j.origin()]; sig == 0 || e != nil && !e.ours && e.Signal != int(sig) && (e.Signal != 0 || e.Status == panicked) {
		return nil
	}
	return endedBy(sig)
}

// endedBy is the failure of a job by a signal that was forwarded.
func endedBy(sig syscall.Signal) error {
	if sig == syscall.SIGINT {
		return errors.New("interrupted")
	}
	return fmt.Errorf("ended by signal: %v", sig)
}

// checkAgents ends the job when an agent has not answered in time.
func (j *job) checkAgents() {
	var silent []string
	for _, c := range j.conns {
		if !c.ready && j.moves.of(c) == nil {
			silent = append(silent, c.errorf("no answer within %v", j.opts.AgentTimeout).Error())
		}
	}
	if len(silent) > 0 {
		j.fail(statusLauncher, errors.New(strings.Join(silent, "\n")))
	}
}

// progressText names the ranks still running.
func (j *job) progressText() string {
	var running []int
	var silent []string
	for _, c := range j.conns {
		for rank := range c.pids {
			running = append(running, rank)
		}
		if !c.ready {
			silent = append(silent, c.host)
		}
	}
	if len(silent) > 0 {
		return "still waiting for the agents of " + strings.Join(silent, ", ")
	}
	if len(running) == 0 {
		return "no rank was running"
	}
	slices.Sort(running)
	if len(running) == 1 {
		return fmt.Sprintf("rank %d of %d was running", running[0], j.size)
	}
	return fmt.Sprintf("ranks %s of %d were running", ranges.Text(running), j.size)
}

// result returns the first failure. If ranks failed it is that of the rank it began with, unless they had been
// told to end. A job that was told to end has failed, however well its ranks have ended. The last lines of all ranks
// have arrived by now.
func (j *job) result() (int, error) {
	switch {
	case j.first != nil:
	case j.failure == nil && j.ending != 0:
		return statusSignal + int(j.ending), endedBy(j.ending)
	default:
		return j.status, j.failure
	}
	err := j.rankError()
	if over := j.interruption(); over != nil {
		return err.Status, over
	}
	return err.Status, err
}
