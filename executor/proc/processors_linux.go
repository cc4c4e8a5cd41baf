package proc

import (
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// processors are all processors on which ranks of the node may run. A rank bound to one
// knows only its own; the others have theirs.
type processors struct {
	set   unix.CPUSet
	asked int  // ranks
	apart bool // some ranks may run on other processors than the rest, or can't be asked
}

// add adds the processors of a process. It adds none if the process can't be asked, as in another
// container.
func (s *processors) add(pid int) {
	var of unix.CPUSet
	if pid <= 0 || unix.SchedGetaffinity(pid, &of) != nil {
		s.apart = true
		return
	}
	s.apart = s.apart || s.asked > 0 && of != s.set
	s.asked++
	for i := range of {
		s.set[i] |= of[i]
	}
}

// addPeer adds the processors of the process at the other end of a connection.
func (s *processors) addPeer(c *net.UnixConn) {
	pid, err := peerPID(c)
	if err != nil {
		pid = 0
	}
	s.add(pid)
}

// count returns how many they are, at least as many as this process has.
func (s *processors) count() int { return max(s.set.Count(), runtime.NumCPU()) }

// spread moves a rank when it seems to share a processor with another one: to an
// equal share of the node's processors, without staying bound. Two waiting ranks yield and never
// look busy, so the kernel may leave them on one processor for all of a short job.
type spread struct {
	all        unix.CPUSet // the rank may run on these
	share      unix.CPUSet // of them
	moves      bool        // false: the kernel alone moves the rank
	lateYields int         // long yields, less short ones
	limit      int         // of lateYields: the rank moves then; doubled with each move
}

// The limits of late yields between two moves. The first is some 20 µs of waiting: a job may
// be short. Computing processes make yields late too, and moving doesn't help: so moves become
// seldom.
const (
	firstMove = 6
	lastMove  = 1 << 20
)

// newSpread returns the spread of the rank with an index among those of its node. If a
// rank is bound already, or there are fewer processors than ranks, it never moves.
func newSpread(s *processors, index, ranks int) spread {
	m := spread{all: s.set, limit: firstMove}
	if s.apart || s.asked < ranks || s.set.Count() < ranks || ranks == 1 {
		return m
	}
	var all []int
	for cpu := range 64 * len(s.set) {
		if s.set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	for _, cpu := range all[index*len(all)/ranks : (index+1)*len(all)/ranks] {
		m.share.Set(cpu)
	}
	m.moves = true
	return m
}

// note counts a yield. It moves the calling thread when too many were late.
func (m *spread) note(late bool) {
	if !late {
		m.lateYields = max(m.lateYields-1, 0)
		return
	}
	if m.lateYields++; m.lateYields < m.limit || !m.moves {
		return
	}
	m.lateYields, m.limit = 0, min(2*m.limit, lastMove)
	if unix.SchedSetaffinity(0, &m.share) == nil {
		_ = unix.SchedSetaffinity(0, &m.all) // as it was
	}
}
