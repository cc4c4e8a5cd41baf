package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/internal/shm"
	"github.com/tierflow/tierflow/executor/internal/tcp"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/levels/memory"
	"github.com/tierflow/tierflow/tasks"
)

// Purposes of data connections.
const (
	memoryPurpose uint8 = 2  // 3 is [executor.NotePurpose], 4 [executor.ClockPurpose]
	linkPurpose   uint8 = 64 // and linksApart-1 more: connections of a link to a rank, by its number
)

// linksApart is how many links between two ranks, one after the other, can be told apart. A dial is given up after 30 s; a link is
// renewed less often in this time.
const linksApart = 64

// segmentBytes is the address space of one rank's shared memory, unless limits are lower. Pages are taken
// only as they are used.
const segmentBytes = 16 << 30

// Polls before a process sleeps: about a millisecond with a core for each rank of
// the node, as it costs nobody else then; a tenth of it otherwise.
const (
	procSpin        = 1000
	procSpinCrowded = 100
)

// linkPolls is the most looks at links before a yield.
const linkPolls = 8

// New makes the world of a rank in a process: the rank's own engine,
// shared memory with the ranks of its node, TCP to the others. It returns when
// the ranks of the node have exchanged their memory. The world owns the job from
// then on and closes it.
func New(ctx context.Context, job Job, rank levels.Rank, t *levels.Topology, config Config) (*executor.World, error) {
	node := neighbours(t, rank)
	if err := config.check(rank, len(node)); err != nil {
		return nil, err
	}
	p, err := newProcess(rank, t, config)
	if err != nil {
		return nil, err
	}
	ctx, failed := joining(ctx)
	defer failed(nil)
	p.doubts = newDoubts(rank, job, config)
	setup := p.setup(rank, t, job)
	setup.Lost = func(r levels.Rank, err error) {
		p.noteLost(r)
		// Another node's loss too: the ranks here who have entered leave because of it.
		failed(executor.LostRank(r, err))
	}
	w, err := executor.New(config.Config, setup)
	if err != nil {
		p.close()
		return nil, err
	}
	p.engine = w.Endpoint(rank)
	incoming := p.accept(job, w, len(node))
	w.Listen()
	if err := p.share(ctx, flow.NewLimits(config.EagerMax, config.EagerBudget).EagerMax, job, rank, node, incoming); err != nil {
		err = explainLoss(ctx, err)
		p.hangUp()
		w.Abandon()
		p.engine.Hold(func(wire.Sink) { p.close() })
		return nil, fmt.Errorf("share memory with the ranks of the node: %w", err)
	}
	w.SetSpin(p.choosePatience(len(node), t.Size()))
	if config.Spread {
		p.spread = newSpread(&p.shared, slices.Index(node, rank), len(node))
	}
	return w, nil
}

// check complains of a configuration without use for a rank, one of sharing on its node.
func (c *Config) check(rank levels.Rank, sharing int) error {
	if c.EagerMax > processEagerMax {
		return fmt.Errorf("EagerMax of %d bytes; between processes at most %d", c.EagerMax, processEagerMax)
	}
	if err := tcp.UsableCongestion(c.Congestion); err != nil {
		return err
	}
	return EnoughDescriptors(sharingDescriptors(sharing), fmt.Sprintf("rank %d, one of %d on its node,", rank, sharing))
}

// setup says how the rank reaches the others.
func (p *process) setup(rank levels.Rank, t *levels.Topology, job Job) executor.Setup {
	s := executor.Setup{Size: t.Size(), Spin: procSpinCrowded, Control: job, Stop: p.stop}
	reach := make([]wire.Reach, t.Size())
	for _, l := range p.far {
		reach[l.Peer] = wire.Far
	}
	p.dial = func(peer levels.Rank, number uint32) {
		p.dials.Go(func() { p.attach(connect(p.dialling, job, peer, number)) })
	}
	s.Ports = []executor.Port{{Rank: rank, Link: p, Sleeper: p, Memory: p, Reach: reach}}
	return s
}

// choosePatience decides how the rank waits for the others, by whether each of the node's
// has a processor. It returns how often the rank yields before it sleeps.
func (p *process) choosePatience(node, size int) (spin int) {
	enough := node <= p.shared.count()
	p.polls, p.most = executor.MostLooks, executor.MostLooks
	switch {
	case !enough: // other ranks need the processor
		p.polls, p.most = executor.FewestLooks, executor.FewestLooks
	case node < size: // each look at a link is a system call, and the kernel may need the processor
		p.polls, p.most = executor.FewestLooks, linkPolls
	}
	if !enough {
		return procSpinCrowded
	}
	return procSpin
}

// accept takes the connections dialled by other ranks. Those of the node, at most so many,
// bring their memory by the channel.
func (p *process) accept(job Job, w *executor.World, node int) <-chan arrivedUnix {
	incoming := make(chan arrivedUnix, node)
	job.Accept(func(peer levels.Rank, purpose uint8, c net.Conn) {
		switch purpose {
		case executor.NotePurpose:
			w.Take(peer, c)
		case executor.ClockPurpose:
			w.TakeClock(c)
		case memoryPurpose:
			u, ok := c.(*net.UnixConn)
			if !ok {
				c.Close()
				return
			}
			select {
			case incoming <- arrivedUnix{peer, u}:
			default: // more than there are ranks
				c.Close()
			}
		default:
			if purpose < linkPurpose || purpose-linkPurpose >= linksApart {
				c.Close()
				return
			}
			p.attach(own(peer, p.findNumber(peer, purpose-linkPurpose), c))
		}
	})
	return incoming
}

// findNumber returns the number of a connection's link, from the remainder in its purpose. If the peer has renewed the link this
// rank does so too.
func (p *process) findNumber(peer levels.Rank, remainder uint8) (number uint32) {
	p.engine.Hold(func(wire.Sink) { number, _ = p.Number(peer) })
	switch ahead := (remainder - uint8(number%linksApart)) % linksApart; {
	case ahead == 0:
		return number
	case ahead < linksApart/2:
		number += uint32(ahead)
		p.engine.RenewLink(peer, number, errRenewed)
		return number
	default:
		return number - (linksApart - uint32(ahead))
	}
}

// errRenewed is the reason to renew a link after its other end has connected anew.
var errRenewed = errors.New("it has connected anew")

// processEagerMax keeps small messages well within rings and read-ahead.
const processEagerMax = min(shm.MaxPayload, tcp.MaxSmall/2)

// joinTime is the default limit of New.
const joinTime = 30 * time.Second

// joining gives ctx the default deadline, and a way to end it with a reason.
func joining(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	stop := context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		ctx, stop = context.WithTimeout(ctx, joinTime)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, func(err error) { cancel(err); stop() }
}

// lossTime is how long the control plane has to tell of a lost rank. Whoever leaves has told it why before, so only a very busy
// machine needs it.
const lossTime = 5 * time.Second

// unreachable is the error of a rank without a way to it.
type unreachable struct{ error }

// Unwrap returns why not.
func (u unreachable) Unwrap() error { return u.error }

// explainLoss returns the loss known to the control plane, if it soon says so. A peer may
// have left, or ended its connection, because another rank died.
func explainLoss(ctx context.Context, err error) error {
	_, ended := errors.AsType[*executor.PeerError](err)
	if _, away := errors.AsType[unreachable](err); !ended && !away {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(lossTime):
	}
	if lost, ok := errors.AsType[*executor.PeerError](context.Cause(ctx)); ok {
		return lost
	}
	return err
}

// neighbours lists the ranks of the node, ascending.
func neighbours(t *levels.Topology, rank levels.Rank) []levels.Rank {
	var node []levels.Rank
	for r := range levels.Rank(t.Size()) {
		if t.Node(r) == t.Node(rank) {
			node = append(node, r)
		}
	}
	return node
}

// connect dials a rank and takes the descriptor out of the runtime's hands.
func connect(ctx context.Context, job Job, peer levels.Rank, number uint32) connection {
	c, err := job.Dial(ctx, peer, linkPurpose+uint8(number%linksApart))
	if err != nil {
		return connection{peer: peer, fd: -1, err: err, number: number}
	}
	return own(peer, number, c)
}

// notSentLow is how much the kernel may hold back of what was written to a connection, bytes. It leaves before
// control frames, and beside the next message to another rank, as a message counts as sent when so
// much of it is left: no more than a short one has, see submodules.ShortSend.
const notSentLow = 64 << 10

// own duplicates a connection's descriptor and closes the connection. Of a TLS connection
// it keeps the session to seal and open records.
func own(peer levels.Rank, number uint32, c net.Conn) connection {
	none := func(err error) connection { return connection{peer: peer, fd: -1, err: err, number: number} }
	var session *seal.Session
	if sealed, ok := c.(*seal.Conn); ok {
		var err error
		if session, c, err = sealed.Detach(); err != nil {
			sealed.Close()
			return none(err)
		}
	}
	defer c.Close()
	sc, ok := c.(syscall.Conn)
	if !ok {
		return none(errors.New("connection has no descriptor"))
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return none(err)
	}
	fd := -1
	if cerr := raw.Control(func(old uintptr) {
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	}); cerr != nil {
		err = cerr
	}
	if err != nil {
		return none(err)
	}
	// Refused options cost speed only. There is no TCP_USER_TIMEOUT: it would also
	// end links to a computing rank, as it doesn't read; the control plane
	// finds a silent host.
	_ = unix.SetNonblock(fd, true)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, notSentLow)
	return connection{peer: peer, fd: fd, seal: session, number: number}
}

type arrivedUnix struct {
	peer levels.Rank
	conn *net.UnixConn
}

// share makes this rank's segment and exchanges segments and doorbells with the
// ranks of the node: the lower rank of each pair dials.
func (p *process) share(ctx context.Context, eagerMax int64, job Job, rank levels.Rank, node []levels.Rank, incoming <-chan arrivedUnix) error {
	p.shared.add(os.Getpid())
	if len(node) == 1 {
		return nil
	}
	size, err := segmentFor(len(node), memory.Available(), softLimit)
	if err != nil {
		return err
	}
	fd, mem, err := newMemory(size)
	if err != nil {
		return err
	}
	own := shm.NewSegment(mem, len(node), shm.Pages{
		Take: func(off, n int64) error { return commit(fd, off, n) },
		Give: func(off, n int64) { // pages that can't be given back stay
			_ = unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
		},
	})
	// Another rank's failure meanwhile breaks communicators and lets go of links.
	p.engine.Hold(func(wire.Sink) { p.own, p.memory = own, fd })
	if err := own.Reserve(); err != nil {
		return err
	}
	me := slices.Index(node, rank)
	var g errgroup.Group
	add := func(peer levels.Rank, c *net.UnixConn) error {
		defer c.Close()
		defer context.AfterFunc(ctx, func() { c.Close() })()
		theirs, bell, err := swap(c, fd, p.doorbell, leastSegment(len(node)))
		if err != nil {
			return executor.LostRank(peer, err)
		}
		l := shm.NewLink(peer, own, shm.MapSegment(theirs, len(node)), me, slices.Index(node, peer), eagerMax, func() { ring(bell) })
		p.engine.Hold(func(wire.Sink) {
			p.shared.addPeer(c) // before the peer has shared with all, and moves its threads
			p.links[peer], p.near = l, append(p.near, l)
			p.bells = append(p.bells, bell)
			p.maps = append(p.maps, theirs)
		})
		if l.PID, l.IsReadable, err = tryReads(c, !p.noReads); err != nil {
			return executor.LostRank(peer, err)
		}
		return nil
	}
	for _, peer := range node[me+1:] {
		g.Go(func() error {
			c, err := job.DialUnix(ctx, peer, memoryPurpose)
			if err != nil {
				return unreachable{err}
			}
			return add(peer, c)
		})
	}
	for expected := slices.Clone(node[:me]); len(expected) > 0; {
		select {
		case a := <-incoming:
			i := slices.Index(expected, a.peer)
			if i < 0 {
				a.conn.Close()
				continue
			}
			expected = slices.Delete(expected, i, i+1)
			g.Go(func() error { return add(a.peer, a.conn) })
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), g.Wait())
		}
	}
	return g.Wait()
}

// newMemory makes a memory file of a size and maps it. It can't shrink, so
// reading it never faults.
func newMemory(size int64) (fd int, mem []byte, err error) {
	if fd, err = unix.MemfdCreate("tierflow", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		return -1, nil, fmt.Errorf("memfd_create: %w", err)
	}
	if err = unix.Ftruncate(fd, size); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		mem, err = mapSegment(fd, size)
	}
	if err != nil {
		unix.Close(fd)
		return -1, nil, fmt.Errorf("shared memory of %d bytes of address space: %w", size, err)
	}
	return fd, mem, nil
}

// mapSegment maps a rank's memory file.
func mapSegment(fd int, size int64) ([]byte, error) {
	return unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
}

// commit takes the pages of a range: a lack of memory is an error here and
// not a fault later. They are the machine's: the size of /dev/shm doesn't count.
func commit(fd int, off, n int64) error {
	if err := enoughLeft(n, memory.Available()); err != nil {
		return err
	}
	for {
		err := unix.Fallocate(fd, 0, off, n)
		switch {
		case err == nil:
			return nil
		case err != unix.EINTR:
			return fmt.Errorf("the machine, or the process's limit of memory, has no room for %s more of shared memory: %w", tasks.FormatBytes(n), err)
		}
	}
}

// swap sends this rank's memory and doorbell and maps the peer's.
func swap(c *net.UnixConn, memory, doorbell int, least int64) (mem []byte, bell int, err error) {
	if _, _, err := c.WriteMsgUnix([]byte{1}, unix.UnixRights(memory, doorbell), nil); err != nil {
		return nil, -1, err
	}
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(8))
	_, n, _, _, err := c.ReadMsgUnix(buf, oob)
	if err != nil {
		return nil, -1, err
	}
	fds, err := descriptors(oob[:n])
	if err != nil {
		return nil, -1, err
	}
	defer unix.Close(fds[0])
	var size int64
	if size, err = checkMemory(fds[0], least); err == nil {
		mem, err = mapSegment(fds[0], size)
		err = os.NewSyscallError("mmap", err)
	}
	if err != nil {
		unix.Close(fds[1])
		return nil, -1, err
	}
	return mem, fds[1], nil
}

// checkMemory returns the size of a peer's file. It refuses one below the least or above what all have, or
// one with a size that can shrink: its mapping could fault.
func checkMemory(fd int, least int64) (size int64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("shared memory of the peer: %w", err)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 || st.Size < least || st.Size > segmentBytes {
		return 0, fmt.Errorf("%w: shared memory of %d bytes, want %d to %d that can't shrink", executor.ErrProtocol, st.Size, least, int64(segmentBytes))
	}
	return st.Size, nil
}

// descriptors takes the two descriptors out of a control message.
func descriptors(oob []byte) ([]int, error) {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(list) != 1 {
		return nil, fmt.Errorf("%w: no descriptors came (%v)", executor.ErrProtocol, err)
	}
	fds, err := unix.ParseUnixRights(&list[0])
	if err != nil || len(fds) != 2 {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, fmt.Errorf("%w: %d descriptors came, want 2 (%v)", executor.ErrProtocol, len(fds), err)
	}
	return fds, nil
}
