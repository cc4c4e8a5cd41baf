package launch

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/levels/join/ports"
	"github.com/tierflow/tierflow/planner/rules"
)

// Agent runs the ranks of one node for the launcher at the other end of stdin and stdout. It
// returns when stdin ends. At this end, or that of ctx, it first kills the ranks still running.
// It writes nothing but frames to stdout, and notes for people to stderr. The error says why
// ranks were killed, or quotes a senseless frame. A program unable to run is no error here: the
// launcher hears of it.
func Agent(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	if err := checkSystem(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	// A write to a launcher gone since must be an error, not the end of this process: the ranks'
	// groups have to be killed.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	a := newAgent(stdout)
	defer a.sweepDoors() // after all ranks have ended
	defer a.close()
	stop := context.AfterFunc(ctx, func() { a.ranks.signal(syscall.SIGKILL, nil) })
	defer stop()

	in := bufio.NewReader(stdin)
	for {
		f, err := readFrame(in)
		if err == nil {
			err = a.handle(f)
		}
		if errors.Is(err, io.EOF) {
			return a.handleEnd(stderr)
		}
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
	}
}

// agent is the state of Agent. Only the reader of stdin writes the fields below wg, before it
// starts run.
type agent struct {
	out   frameWriter
	ranks ranks
	wg    sync.WaitGroup // run

	start      *start
	program    string          // resolved path
	env        []string        // of all ranks
	bound      [][]int         // processors of each rank; nil: none is bound
	feeders    map[int]*feeder // by rank; ranks without input have none
	listener   *os.File        // rank 0's; closed by close, and before by run unless ranks may be started again
	meeting    string          // its addresses for the ranks here
	traces     traces          // the ranks' files of steps
	released   bool
	inputEnded bool
	orders     chan restartOrder // ranks to start again, each once at a time; closed: there are no more
	last       sync.Once         // closes orders
}

func newAgent(stdout io.Writer) *agent {
	a := &agent{out: frameWriter{w: stdout}}
	a.ranks = ranks{send: a.send, live: map[int]*os.Process{}, notes: notes{send: a.send}}
	return a
}

// send sends a frame, and kills the ranks if nobody listens any more.
func (a *agent) send(f frame) {
	if err := a.out.write(f); err != nil {
		a.ranks.signal(syscall.SIGKILL, nil)
	}
}

// close kills the ranks still running and returns when all goroutines have ended.
func (a *agent) close() {
	a.ranks.signal(syscall.SIGKILL, nil)
	a.endRestarts()
	a.wg.Wait()
	a.ranks.notes.close()
	a.ranks.questions.close()
	a.traces.remove()
	if a.listener != nil {
		a.listener.Close()
	}
}

// sweepDoors removes the doors of killed ranks.
func (a *agent) sweepDoors() {
	if a.start == nil {
		return
	}
	if setting := a.start.door(); setting != "off" {
		door.Sweep(door.Folder(setting))
	}
}

// given returns the variables that all ranks here are given from outside.
func (s *start) given() []string {
	if s.Inherit {
		return append(passedEnv(os.Environ(), true), s.Env...)
	}
	return s.Env
}

// environ returns the variables of all ranks here. They are managed, unless somebody says otherwise. Forced plans by
// the algorithms of other libraries become equal ones: programs need not know their words.
func (s *start) environ() ([]string, error) {
	vars := append([]string{env.Managed + "=1"}, s.given()...)
	text := (&Options{Env: vars}).getenv(env.Plan)
	plan, err := rules.ExpandWords(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", env.Plan, err)
	}
	if plan != text {
		vars = append(slices.Clip(vars), env.Plan+"="+plan)
	}
	return vars, nil
}

// door is the ranks' setting for their doors.
func (s *start) door() string { return (&Options{Env: s.given()}).getenv(env.Door) }

// handleEnd handles the end of stdin: the job is over, or the launcher is gone.
func (a *agent) handleEnd(stderr io.Writer) error {
	a.ranks.mu.Lock()
	left := len(a.ranks.live)
	a.ranks.mu.Unlock()
	if left == 0 {
		return nil
	}
	fmt.Fprintf(stderr, "agent: the launcher is gone, killing %d ranks\n", left)
	return errors.New("agent: the launcher is gone")
}

func (a *agent) handle(f frame) error {
	switch {
	case f.Start != nil && a.start == nil:
		return a.prepare(f.Start)
	case f.Release != nil && a.program != "" && !a.released:
		a.released = true
		a.wg.Go(func() { a.run(f.Release.Rendezvous) })
		return nil
	case f.Tell != nil:
		a.ranks.notes.tell(f.Tell)
		return nil
	case f.Restart != nil && a.start != nil && a.start.Restarts && a.released && slices.Contains(a.start.Ranks, f.Restart.Rank):
		select {
		case a.orders <- *f.Restart:
			return nil
		default:
			return errors.New("the launcher starts more ranks again than there were")
		}
	case f.Last:
		a.endRestarts()
		return nil
	case f.Signal == stateSignal:
		a.ranks.questions.ask()
		return nil
	case f.Signal != "":
		sig, err := signalNamed(f.Signal)
		switch {
		case err != nil:
			return err
		case f.Only != nil:
			a.ranks.signalOne(sig, *f.Only)
		default:
			a.ranks.signal(sig, f.Spare)
		}
		return nil
	case f.Input != nil && a.released && !a.inputEnded:
		return a.handleInput(f.Input)
	}
	return errors.New("the launcher sent a frame out of turn")
}

// handleInput hands a piece to the reading ranks. It never waits: the launcher keeps to the
// pieces a rank may have.
func (a *agent) handleInput(in *input) error {
	a.inputEnded = in.End
	for _, f := range a.feeders {
		if in.End {
			close(f.pieces)
			continue
		}
		select {
		case f.pieces <- in.Bytes:
		default: // it has closed its input, and the launcher does not know yet
		}
	}
	return nil
}

// prepare makes all checks possible before a rank starts. So no rank starts if one host can't run
// it.
func (a *agent) prepare(s *start) error {
	a.start = s
	if s.Version != protocolVersion {
		a.refuse(statusLauncher, fmt.Errorf("the launcher speaks protocol %d, this agent %d", s.Version, protocolVersion))
		return nil
	}
	if len(s.Ranks) == 0 || len(s.Program) == 0 {
		return fmt.Errorf("start without ranks or program: %d, %q", len(s.Ranks), s.Program)
	}
	program, status, err := findProgram(s.Program[0], s.Dir)
	if err != nil {
		a.refuse(status, err)
		return nil
	}
	r := ready{Version: protocolVersion}
	if r.Rendezvous, err = a.equip(s); err != nil {
		a.refuse(statusLauncher, err)
		return nil
	}
	a.orders, a.ranks.notes.on = make(chan restartOrder, len(s.Ranks)), s.Restarts
	if !s.Restarts {
		a.endRestarts()
	}
	a.program, a.feeders = program, newFeeders(s.Readers)
	a.send(frame{Ready: &r})
	return nil
}

// equip gets the ranks variables, a folder for traces, processors and, on rank 0's node, a listener. It
// returns the listener's addresses.
func (a *agent) equip(s *start) (rendezvous string, err error) {
	if a.env, err = s.environ(); err != nil {
		return "", err
	}
	if err = os.Setenv(env.Door, s.door()); err != nil { // for those who ask ranks here
		return "", err
	}
	if a.traces, err = makeTraces(s.TraceEvery); err != nil {
		return "", err
	}
	within, err := s.ports()
	if err != nil {
		return "", err
	}
	if a.bound, err = bindHere(s); err != nil || !s.Listen {
		return "", err
	}
	given := launcher.NewVars((&Options{Env: s.given()}).getenv)
	advertised := given.Addresses(env.Advertise)
	if err := given.Err(); err != nil {
		return "", err
	}
	m, err := listenRendezvous(within, advertised, s.Loopback)
	a.listener, a.meeting = m.file, m.near
	return m.far, err
}

// ports returns the range of ports for the listeners here, if it has enough.
func (s *start) ports() (ports.Range, error) {
	r, err := ports.Parse((&Options{Env: s.given()}).getenv(env.Ports))
	if err != nil {
		return r, fmt.Errorf("%s: %w", env.Ports, err)
	}
	ranks, root := len(s.Ranks), s.Listen
	if !s.Inherit { // the launcher's machine plays all hosts
		ranks, root = s.Size, true
	}
	if s.Size > 1 {
		err = r.CheckRanks(ranks, root, s.Restarts)
	}
	return r, err
}

// bindHere returns the processors of each rank of the agent; nil: none is bound.
func bindHere(s *start) ([][]int, error) {
	binding := cmp.Or(s.Bind, os.Getenv(env.Bind))
	if err := checkBinding(binding); err != nil {
		return nil, fmt.Errorf("%s: %w", env.Bind, err) // a launcher has checked its own
	}
	if binding == bindNone {
		return nil, nil
	}
	host, err := hostProcessors()
	if err != nil && binding == "" {
		return nil, nil // nobody has asked for it
	}
	if err != nil {
		return nil, err
	}
	return bind(binding, len(s.Ranks), host)
}

func (a *agent) refuse(status int, err error) {
	a.send(frame{Refused: &refused{Reason: err.Error(), Status: status}})
}

// findProgram returns the path to run, or an exit status and the reason.
func findProgram(program, dir string) (path string, status int, err error) {
	if _, err := os.Stat(dir); err != nil {
		return "", statusLauncher, fmt.Errorf("working directory: %w", err)
	}
	path = program
	if filepath.Base(program) != program && !filepath.IsAbs(program) {
		path = filepath.Join(dir, program)
	}
	path, err = exec.LookPath(path)
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err // without a second mention of the name
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", statusNotRunning, fmt.Errorf("program %q (working directory %s): not executable", program, dir)
	case err != nil:
		return "", statusNotFound, fmt.Errorf("program %q (working directory %s): %w", program, dir, err)
	}
	return path, 0, nil
}

// run starts the ranks and returns when they have ended. It keeps the thread: a rank dies with
// the thread of its start.
func (a *agent) run(rendezvous string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	rendezvous = cmp.Or(a.meeting, rendezvous)
	for i, rank := range a.start.Ranks {
		if a.start.Late {
			break
		}
		if err := a.startRank(i, rendezvous, restartOrder{First: true}, a.feeders[rank]); err != nil {
			a.refuse(statusNotRunning, fmt.Errorf("start rank %d: %w", rank, err))
			break
		}
	}
	if a.listener != nil && !a.start.Restarts {
		a.listener.Close() // it is rank 0's alone: when that ends, dialers must not find it open
	}
	for r := range a.orders {
		if err := a.startRank(slices.Index(a.start.Ranks, r.Rank), rendezvous, r, nil); err != nil {
			a.send(frame{Exited: &exited{Rank: r.Rank, Status: statusNotRunning, Text: err.Error()}})
		}
	}
	a.ranks.wg.Wait()
	a.traces.sendAll(a.start.Ranks, a.send)
	a.send(frame{Done: true})
}

// startRank starts the i-th rank, or starts it again. Started again it has no input.
func (a *agent) startRank(i int, rendezvous string, r restartOrder, in *feeder) error {
	var processors []int
	if a.bound != nil {
		processors = a.bound[i]
	}
	return onProcessors(processors, func() error { return a.ranks.start(a.start.Ranks[i], a.command(i, rendezvous, r), in) })
}

// endRestarts lets no rank be started again.
func (a *agent) endRestarts() {
	if a.orders != nil {
		a.last.Do(func() { close(a.orders) })
	}
}

// command returns the i-th rank's process. Unless its Stdin is set it reads /dev/null.
func (a *agent) command(i int, rendezvous string, r restartOrder) *exec.Cmd {
	s := a.start
	base := append(slices.Clip(a.env), a.traces.env()...)
	cmd := &exec.Cmd{Path: a.program, Args: s.Program, Dir: s.Dir, Env: rankEnv(base, s, i, rendezvous, r)}
	if s.Ranks[i] == 0 && r.First && a.listener != nil {
		cmd.ExtraFiles = []*os.File{a.listener}
	}
	return cmd
}
