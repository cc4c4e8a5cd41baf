package launch

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels/join/launcher"
)

const (
	drainIdle = 200 * time.Millisecond
	drainMax  = 1 << 20 // the most a pipe holds
)

// ranks are the processes of one node, each the leader of its own process group.
type ranks struct {
	send func(frame)

	questions questions
	notes     notes

	mu     sync.Mutex
	live   map[int]*os.Process // by rank; the process ids are valid under mu
	killed bool                // no rank starts any more

	wg sync.WaitGroup // the goroutines of the ranks
}

var errKilled = errors.New("killed before it started")

// signal sends sig to every process group, but for that of a rank to spare. After SIGKILL no rank
// starts any more.
func (r *ranks) signal(sig syscall.Signal, spare *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed = r.killed || sig == syscall.SIGKILL
	for rank, p := range r.live {
		if spare == nil || rank != *spare {
			signalGroup(p.Pid, sig)
		}
	}
}

// signalOne sends sig to the process group of one rank.
func (r *ranks) signalOne(sig syscall.Signal, rank int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.live[rank]; p != nil {
		signalGroup(p.Pid, sig)
	}
}

// start runs cmd as rank and returns when it runs. Its input comes from f; nil: it has
// none. wg counts the goroutines that carry on. The calling thread has to live as long as the rank, see rankAttr.
func (r *ranks) start(rank int, cmd *exec.Cmd, f *feeder) (err error) {
	var pipes [streams + 1]*os.File     // the last is for blame
	var inherited [streams + 4]*os.File // and the rank's input, questions and lobby
	var in *os.File                     // the agent's end of the input
	defer func() {
		closeAll(inherited[:])
		if err != nil {
			closeAll(append(pipes[:], in))
		}
	}()
	if f != nil {
		if inherited[streams+1], in, err = os.Pipe(); err != nil {
			return err
		}
		cmd.Stdin = inherited[streams+1]
	}
	for i := range pipes {
		if pipes[i], inherited[i], err = os.Pipe(); err != nil {
			return err
		}
	}
	cmd.Stdout, cmd.Stderr = inherited[streamOut], inherited[streamErr]
	cmd.ExtraFiles = append(cmd.ExtraFiles, inherited[streams])
	inherited[streams+2] = r.questions.add(rank, cmd)
	if inherited[streams+3], err = r.notes.add(rank, cmd); err != nil {
		return err
	}
	cmd.SysProcAttr = rankAttr()
	if err := r.fork(rank, cmd); err != nil {
		return err
	}
	r.send(frame{Started: &started{Rank: rank, PID: cmd.Process.Pid}})
	ended := make(chan struct{})
	for i, pipe := range pipes[:streams] {
		r.wg.Go(func() { r.read(rank, i, pipe, ended) })
	}
	if f != nil {
		r.wg.Go(func() { f.feed(in, ended, r.send) })
	}
	r.wg.Go(func() {
		r.wait(rank, cmd, pipes[streams])
		close(ended)
		if f != nil {
			in.SetWriteDeadline(time.Now()) // wakes the feeder: a process left by the rank may hold the other end
		}
		for _, pipe := range pipes[:streams] {
			pipe.SetReadDeadline(time.Now()) // wakes the reader, see drain
		}
	})
	return nil
}

// fork starts cmd unless a kill came first. A later kill finds it in live.
func (r *ranks) fork(rank int, cmd *exec.Cmd) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed {
		return errKilled
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.live[rank] = cmd.Process
	return nil
}

// wait reports the end of a rank at once, before its output is drained: these reports have the
// order of the ranks' failures. Processes left in the rank's group are killed. wait closes blame.
func (r *ranks) wait(rank int, cmd *exec.Cmd, blame *os.File) {
	defer blame.Close()
	reap(cmd, &r.mu, func() {
		signalGroup(cmd.Process.Pid, syscall.SIGKILL)
		delete(r.live, rank)
	})
	e := exited{Rank: rank, Status: cmd.ProcessState.ExitCode(), Blame: launcher.ReadBlame(blame)}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = int(ws.Signal())
		e.Text = ws.Signal().String()
		e.Status = statusSignal + e.Signal
	}
	r.send(frame{Exited: &e})
}

// read passes on a stream until its end.
func (r *ranks) read(rank, stream int, pipe *os.File, ended <-chan struct{}) {
	defer pipe.Close()
	buf := make([]byte, pieceSize)
	for {
		n, err := pipe.Read(buf)
		r.output(rank, stream, buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			<-ended
			r.drain(rank, stream, pipe, buf)
			break
		}
		if err != nil {
			break
		}
	}
	r.send(frame{Output: &output{Rank: rank, Stream: stream}})
}

// drain reads the pipe of an ended rank. The end of the stream may never come, if a
// process outside the group still has the pipe open. So silence, or more bytes than a
// pipe holds, are an end too.
func (r *ranks) drain(rank, stream int, pipe *os.File, buf []byte) {
	for total := 0; total < drainMax; {
		pipe.SetReadDeadline(time.Now().Add(drainIdle))
		n, err := pipe.Read(buf)
		r.output(rank, stream, buf[:n])
		if err != nil {
			return
		}
		total += n
	}
}

func (r *ranks) output(rank, stream int, b []byte) {
	if len(b) > 0 {
		r.send(frame{Output: &output{Rank: rank, Stream: stream, Bytes: b}})
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
