package proc

import (
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// processors are those on which ranks of the node may run. A rank that is bound to one
// knows only that; the others have theirs.
type processors struct{ set unix.CPUSet }

// add adds the processors of a process. One that can't be asked, such as that of another
// container, adds none.
func (s *processors) add(pid int) {
	var of unix.CPUSet
	if pid <= 0 || unix.SchedGetaffinity(pid, &of) != nil {
		return
	}
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
