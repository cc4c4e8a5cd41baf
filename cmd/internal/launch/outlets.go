package launch

import (
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// everyRank in place of a rank stands for all ranks of an agent.
const everyRank = -1

// writeTime bounds a rank's time to make room for a write. A rank that doesn't read gets nothing
// any more.
const writeTime = 100 * time.Millisecond

// outlets are an agent's ends of connections, one to each of its ranks. The zero value has none.
type outlets struct {
	mu sync.Mutex
	to map[int]*os.File // by rank
}

// set puts the end to a rank in the place of the one to the rank's process before.
func (o *outlets) set(rank int, f *os.File) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to == nil {
		o.to = map[int]*os.File{}
	}
	if before := o.to[rank]; before != nil {
		_ = before.Close()
	}
	o.to[rank] = f
}

// write writes to a rank, or to all.
func (o *outlets) write(to int, b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rank, f := range o.to {
		if to != rank && to != everyRank {
			continue
		}
		_ = f.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := f.Write(b); err != nil {
			_ = f.Close()
			delete(o.to, rank)
		}
	}
}

// close closes all ends.
func (o *outlets) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.to {
		_ = f.Close()
	}
	o.to = nil
}

// bequeath lets a process inherit a file at its start, and tells it the descriptor by a variable.
func bequeath(cmd *exec.Cmd, variable string, f *os.File) {
	cmd.Env = append(cmd.Env, variable+"="+strconv.Itoa(firstFD+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
}
