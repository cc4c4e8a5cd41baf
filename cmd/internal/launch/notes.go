package launch

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"sync"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/launcher"
)

// notes are an agent's sockets to its ranks, for the lines of package launcher's lobby. The zero value
// has none.
type notes struct {
	on   bool // ranks get one
	send func(frame)
	outlets
	wg sync.WaitGroup // readers
}

// add gives a process a socket before its start, and returns its end, to be closed once the
// process has inherited it; nil: it has none.
func (n *notes) add(rank int, cmd *exec.Cmd) (theirs *os.File, err error) {
	if !n.on {
		return nil, nil
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	bequeath(cmd, env.LobbyFD, theirs)
	n.set(rank, ours)
	n.wg.Go(func() { n.read(rank, ours) })
	return theirs, nil
}

// read passes on a rank's words, until its end.
func (n *notes) read(rank int, from *os.File) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, launcher.MaxNote)
	for lines.Scan() {
		n.send(frame{Said: &note{Rank: rank, Line: bytes.Clone(lines.Bytes())}})
	}
}

// tell writes a line to a rank, or to all.
func (n *notes) tell(t *note) { n.write(t.Rank, append(t.Line, '\n')) }

// close ends the sockets, and returns when nobody reads them any more.
func (n *notes) close() {
	n.outlets.close()
	n.wg.Wait()
}
