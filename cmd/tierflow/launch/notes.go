package launch

import (
	"bufio"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/tierflow/tierflow/levels/join/launcher"
)

// everyRank is the receiver of a note to all ranks of an agent.
const everyRank = -1

// notes are an agent's sockets to its ranks, for the lines of package launcher's lobby. The zero value
// has none.
type notes struct {
	on   bool // ranks get one
	send func(frame)

	mu sync.Mutex
	to map[int]*os.File // by rank
	wg sync.WaitGroup   // readers
}

// tellTime is how long a rank may take to make room for a line. One that doesn't read is told no more.
const tellTime = 100 * time.Millisecond

// add gives a process that is not started yet a socket, and returns its end, to be closed once the process has
// inherited it; nil: it has none.
func (n *notes) add(rank int, cmd *exec.Cmd) (theirs *os.File, err error) {
	if !n.on {
		return nil, nil
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	bequeath(cmd, launcher.LobbyVariable, theirs)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(rank)
	n.to[rank] = ours
	n.wg.Go(func() { n.read(rank, ours) })
	return theirs, nil
}

// read passes on what a rank says, until its end.
func (n *notes) read(rank int, from *os.File) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, launcher.MaxNote)
	for lines.Scan() {
		n.send(frame{Said: &note{Rank: rank, Line: append([]byte{}, lines.Bytes()...)}})
	}
}

// tell writes a line to a rank, or to all.
func (n *notes) tell(t *note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for rank, f := range n.to {
		if t.Rank != rank && t.Rank != everyRank {
			continue
		}
		_ = f.SetWriteDeadline(time.Now().Add(tellTime))
		if _, err := f.Write(append(t.Line, '\n')); err != nil {
			n.drop(rank)
		}
	}
}

// drop closes a rank's socket. The lock is held.
func (n *notes) drop(rank int) {
	if f := n.to[rank]; f != nil {
		_ = f.Close()
		delete(n.to, rank)
	}
}

// close ends the sockets, and returns when nobody reads them any more.
func (n *notes) close() {
	n.mu.Lock()
	for rank := range n.to {
		n.drop(rank)
	}
	n.mu.Unlock()
	n.wg.Wait()
}
