//go:build linux

package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// breakConnection ends a connection of one rank in one of several ways. It reports whether there was one.
func (p *Processes) breakConnection(draw *rand.Rand) (broke bool) {
	p.look(levels.Rank(draw.IntN(p.Size())), func(o opened, _ *faulty.Link) {
		fds := slices.Concat(o.Connections()...)
		if len(fds) == 0 {
			return
		}
		broke = true
		switch fd := fds[draw.IntN(len(fds))]; draw.IntN(3) {
		case 0:
			_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		case 1:
			_ = unix.Shutdown(fd, unix.SHUT_WR)
		default:
			reset(fd)
		}
	})
	return broke
}

// reset resets a connection, as a firewall would. The peer hears of it, and this end.
func reset(fd int) {
	none := unix.RawSockaddrInet4{Family: unix.AF_UNSPEC}
	_, _, _ = unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(none))
}

// Ranks whose connections break under traffic live on, all of them, with right sums and messages in order.
func TestBrokenConnections(t *testing.T) {
	var breaks, shrinks atomic.Int64
	seeds(t, 12, func(t testing.TB, seed uint64) {
		draw := rand.New(rand.NewPCG(seed, 0))
		topo := []string{"2x1", "2x2", "3x2", "4x1", "3x1"}[draw.IntN(5)]
		h, _ := parse(t, topo, "")
		config := proc.Config{Config: executor.Config{EagerBudget: []int64{0, 300}[draw.IntN(2)]}}
		p := openProcesses(t, h, config, nil)
		defer closeProcesses(t, p)
		b := &unplugged{p: p, plan: shrinkPlans[draw.IntN(len(shrinkPlans))], count: 2 + draw.IntN(60000)}
		most := 1 + draw.IntN(3)
		var over atomic.Bool
		go func() { // ends with the ranks, or before
			for n := 0; n < most && !over.Load(); clocktest.Pause(t.Context(), time.Duration(draw.IntN(1500))*time.Millisecond) {
				if p.breakConnection(draw) {
					breaks.Add(1)
					n++
				}
			}
			b.enough.Store(true)
		}()
		for r, err := range ranks(t, p.World, func(ctx context.Context, r int) error { return b.live(ctx, t, h, levels.Rank(r)) }) {
			if err != nil {
				t.Errorf("%s, %s, %d numbers: rank %d: %v", topo, b.plan, b.count, r, err)
			}
		}
		over.Store(true)
		shrinks.Add(b.shrinks.Load())
	})
	t.Logf("%d connections broken, ranks shrank %d times", breaks.Load(), shrinks.Load())
}

// unplugged is ranks whose connections break.
type unplugged struct {
	p       *Processes
	plan    string
	count   int
	enough  atomic.Bool
	shrinks atomic.Int64
}

// live sums, and passes messages around, until enough connections have broken and all know it.
func (b *unplugged) live(ctx context.Context, t testing.TB, h *levels.Topology, me levels.Rank) error {
	comm := b.p.Endpoint(me).Comm(0)
	numbers := make([]int64, b.count)
	sum := sumOn(t, comm, h, b.plan, numbers)
	c := &casualties{}
	for round := 0; ; round++ {
		fillNumbers(numbers, me, b.enough.Load())
		err := sum.Do(ctx)
		if err == nil {
			if err = c.check(comm, numbers); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if numbers[1] == int64(comm.Size()) {
				return nil
			}
			err = passAround(ctx, comm, round)
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, errWrong) || !names(err, everyone(b.p.World)...) && !errors.Is(err, executor.ErrLink):
			return fmt.Errorf("round %d: %w", round, err)
		}
		s, err := comm.Shrink(ctx)
		if err != nil {
			return fmt.Errorf("round %d, shrink: %w", round, err)
		}
		if len(s.Lost) > 0 || s.Comm.Size() != b.p.Size() {
			return fmt.Errorf("round %d: lost %v", round, s.Lost)
		}
		b.shrinks.Add(1)
		comm = s.Comm
		sum = sumOn(t, comm, h, b.plan, numbers)
	}
}

// passAround sends some messages to the next rank and takes those of the one before.
func passAround(ctx context.Context, c *executor.Comm, round int) error {
	const messages = 5
	n := c.Size()
	var sends []*executor.Transfer
	for i := range messages {
		s, err := c.Send(ctx, (c.Rank()+1)%levels.Rank(n), 7, 0, fmt.Appendf(make([]byte, 40<<(i*2)), "%d %d", round, i))
		if err != nil {
			return err
		}
		sends = append(sends, s)
	}
	buf := make([]byte, 1<<15)
	for i := range messages {
		size, err := recvOn(ctx, c, (c.Rank()+levels.Rank(n)-1)%levels.Rank(n), 7, buf)
		if err != nil {
			return err
		}
		var of, at int
		if _, err := fmt.Sscanf(string(buf[40<<(i*2):size]), "%d %d", &of, &at); err != nil || at != i {
			return fmt.Errorf("%w: message %d is %q (%v)", errWrong, i, buf[:size], err)
		}
	}
	return waitAll(ctx, sends)
}

// What came before a connection broke, for a communicator that this rank makes only later, is kept. Nobody
// gives its budget back twice.
func TestBrokenConnectionKeepsEarly(t *testing.T) {
	t.Parallel() // it mostly waits
	const budget = 2000
	h, _ := parse(t, "2x1", "")
	var log lines
	p := openProcesses(t, h, proc.Config{Config: executor.Config{EagerBudget: budget, Log: log.logger()}}, nil)
	defer closeProcesses(t, p)
	sent, brought := make(chan struct{}), make(chan struct{})
	succeed(t, p.World, func(ctx context.Context, r int) error {
		e, text := p.Endpoint(levels.Rank(r)), []byte("early")
		all := e.Comm(0)
		if r == 0 {
			early := makeComm(t, e, 1, everyone(p.World))
			for range 3 {
				s, err := early.Send(ctx, 1, 1, 0, text)
				if err == nil {
					err = s.Wait(ctx)
				}
				if err != nil {
					return err
				}
			}
			if err := early.Close(); err != nil {
				return err
			}
		}
		if err := barrierOn(t, all).Do(ctx); err != nil { // what was sent before is here
			return err
		}
		if r == 0 {
			p.look(0, func(o opened, _ *faulty.Link) { reset(o.Connections()[1][0]) })
			close(sent)
		}
		<-sent
		var err error
		for err == nil { // a rank may be through before its peer sees the break
			err = barrierOn(t, all).Do(ctx)
		}
		if !errors.Is(err, executor.ErrLink) && !names(err, 0, 1) {
			return fmt.Errorf("error %w, want that a connection broke", err)
		}
		s, err := all.Shrink(ctx)
		if err != nil {
			return err
		}
		if r == 0 && e.Budget(1) != budget {
			t.Errorf("%d bytes may go without credit on a new connection, want %d", e.Budget(1), budget)
		}
		for round := range 100 {
			if err := passAround(ctx, s.Comm, round); err != nil {
				return err
			}
			if r == 1 && round == 50 {
				late, buf := makeComm(t, e, 1, everyone(p.World)), make([]byte, 10)
				for range 3 {
					if n, err := recvOn(ctx, late, 0, 1, buf); err != nil || string(buf[:n]) != "early" {
						return fmt.Errorf("%q, %w", buf, err)
					}
				}
				close(brought)
			}
		}
		<-brought
		return nil
	})
	if text := log.text(); !strings.Contains(text, `"connection made anew" rank=0 peer=1 number=1`) {
		t.Errorf("logged %s", text)
	}
}
