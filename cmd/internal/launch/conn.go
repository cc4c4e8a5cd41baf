package launch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const queuedFrames = 64

// conn is the launcher's end of one agent.
type conn struct {
	host    string
	ranks   []int
	sources map[int]*source // by rank
	starts  map[int]int     // processes of a rank so far; in the job's loop

	// Owned by the job's loop.
	ready  bool
	done   bool        // the agent has said so
	missed bool        // its ranks have moved, or nobody waits for it: only its end counts
	pids   map[int]int // of running ranks, by rank

	cmd    *exec.Cmd
	queue  chan frame // closed by hangUp
	closed bool
	stderr agentStderr
	traces string // folder for the ranks' steps; empty: none
}

// event is a message of a conn to the job's loop. The last event of each has gone set;
// err is nil in it after a Done.
type event struct {
	conn  *conn
	frame frame
	err   error
	gone  bool
}

// sshOptions make ssh ask no questions, since nobody answers them, and notice hosts that fall
// silent.
var sshOptions = []string{"-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"}

// agentCommand returns the command line for the agent of host.
func agentCommand(o *Options, host string) []string {
	if o.isLocal() {
		return o.Agent
	}
	remote := strings.Fields(o.Launcher)
	if o.Launcher == launcherSSH {
		remote = append(remote, sshOptions...)
	}
	remote = append(remote, strings.NewReplacer("[", "", "]", "").Replace(host))
	for _, word := range o.Agent {
		remote = append(remote, shellQuote(word))
	}
	return remote
}

// shellQuote protects a word from the remote shell. Plain words stay as they are, for
// launchers without a shell.
func shellQuote(word string) string {
	plain := func(c rune) bool { return isHostRune(c) && c != '[' && c != ']' || strings.ContainsRune("/+=,", c) }
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// dial starts the agent of host and the goroutines serving it. wg counts these; they end after
// the agent has.
func dial(o *Options, host string, ranks []int, files logs, out *printer, events chan<- event, wg *sync.WaitGroup) (*conn, error) {
	line := agentCommand(o, host)
	c := &conn{
		host: host, ranks: ranks, traces: o.TraceDir, sources: map[int]*source{}, pids: map[int]int{}, starts: map[int]int{},
		cmd: exec.Command(line[0], line[1:]...), queue: make(chan frame, queuedFrames),
	}
	for _, rank := range ranks {
		c.sources[rank] = &source{label: fmt.Sprintf("[%d] ", rank), raw: o.NoPrefix, log: files.of(rank)}
	}
	c.stderr = agentStderr{out: out, source: source{label: "[" + host + "] "}}
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, c.errorf("%w", err)
	}
	fromAgent, toLauncher := io.Pipe()
	c.cmd.Env = o.Env
	c.cmd.Stdout, c.cmd.Stderr = toLauncher, &c.stderr
	c.cmd.WaitDelay = time.Second   // a remote shell may leave a process with our pipes
	c.cmd.SysProcAttr = groupAttr() // a terminal's ^C is for the launcher alone
	if err := c.cmd.Start(); err != nil {
		return nil, c.errorf("%w", err)
	}
	exit := make(chan error, 1)
	wg.Go(func() {
		exit <- c.cmd.Wait()
		toLauncher.Close()
	})
	wg.Go(func() { c.write(stdin) })
	wg.Go(func() {
		if err := c.read(bufio.NewReader(fromAgent), out, events); err != nil {
			c.kill() // it does not speak our language
			events <- event{conn: c, err: c.errorf("%w", err)}
		}
		fromAgent.Close()
		events <- event{conn: c, gone: true, err: c.farewell(<-exit)}
	})
	return c, nil
}

// read prints output and hands every other frame to the job's loop, until the agent's stdout ends.
func (c *conn) read(in *bufio.Reader, out *printer, events chan<- event) error {
	for {
		f, err := readFrame(in)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.Kept != nil {
			if err := c.keep(f.Kept); err != nil {
				return err
			}
			continue
		}
		if f.Started != nil && c.sources[f.Started.Rank] != nil {
			c.sources[f.Started.Rank].begin()
		}
		if f.Output == nil {
			events <- event{conn: c, frame: f}
			continue
		}
		src := c.sources[f.Output.Rank]
		if src == nil || f.Output.Stream < 0 || f.Output.Stream >= streams {
			return fmt.Errorf("output of rank %d, stream %d, which is not here", f.Output.Rank, f.Output.Stream)
		}
		if err := out.print(src, f.Output.Stream, f.Output.Bytes); err != nil {
			events <- event{conn: c, err: err}
		}
	}
}

// write sends the queued frames and then closes the agent's stdin. Errors show as the
// agent's end.
func (c *conn) write(stdin io.WriteCloser) {
	defer stdin.Close()
	w := frameWriter{w: stdin}
	for f := range c.queue {
		w.write(f)
	}
}

// send queues f. An agent no longer reading loses frames: the job's loop never waits for one
// host.
func (c *conn) send(f frame) {
	if c.closed {
		return
	}
	select {
	case c.queue <- f:
	default:
	}
}

// hangUp ends the agent's stdin after the queued frames. The agent then kills the ranks still
// running, and ends.
func (c *conn) hangUp() {
	if !c.closed {
		c.closed = true
		close(c.queue)
	}
}

// kill ends the agent's process, or the remote shell's, with all its children.
func (c *conn) kill() {
	if c.cmd.Process.Kill() == nil { // so it has not been waited for
		signalGroup(c.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// farewell describes the agent's end, should it come too early.
func (c *conn) farewell(exit error) error {
	c.stderr.flush()
	cause := errors.New("the agent ended early")
	if exit != nil {
		cause = fmt.Errorf("%w: %w", cause, exit)
	}
	return c.errorf("%w%s", cause, quoteTail("its last lines on stderr", c.stderr.source.tail))
}

// errorf names the host and the command line of its agent.
func (c *conn) errorf(format string, args ...any) error {
	return fmt.Errorf("host %s: agent (%s): %w", c.host, strings.Join(c.cmd.Args, " "), fmt.Errorf(format, args...))
}

// agentStderr shows the agent's stderr, with the remote shell's complaints, and keeps
// its last lines.
type agentStderr struct {
	out    *printer
	source source
}

func (a *agentStderr) Write(b []byte) (int, error) {
	return len(b), a.out.print(&a.source, streamErr, b)
}
func (a *agentStderr) flush() { a.out.print(&a.source, streamErr, nil) }

// keep adds a piece to a rank's file.
func (c *conn) keep(k *tracePiece) (err error) {
	if c.sources[k.Rank] == nil || c.traces == "" {
		return fmt.Errorf("a trace of rank %d, for which nobody has asked", k.Rank)
	}
	flags := os.O_WRONLY | os.O_APPEND
	if k.First {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(filepath.Join(c.traces, traceName(k.Rank)), flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(k.Bytes)
	return errors.Join(err, f.Close())
}
