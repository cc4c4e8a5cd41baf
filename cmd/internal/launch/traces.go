package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/join/env"
)

// keptBytes is how much of a file goes into a frame.
const keptBytes = 1 << 20

// traceName is the file of a rank.
func traceName(rank int) string { return fmt.Sprintf("r%d.trace", rank) }

// traces is a folder for the files of an agent's ranks. The zero value is none.
type traces struct {
	dir   string
	every int // one call of so many
}

// makeTraces makes one; none for 0.
func makeTraces(every int) (t traces, err error) {
	if t.every = every; every > 0 {
		t.dir, err = os.MkdirTemp("", "tierflow-trace")
	}
	return t, err
}

// env is the ranks' variable for it.
func (t *traces) env() []string {
	if t.dir == "" {
		return nil
	}
	return []string{env.Trace + "=" + t.dir + ":every=" + strconv.Itoa(t.every)}
}

// sendAll sends the files of ended ranks. A killed rank has none.
func (t *traces) sendAll(ranks []int, send func(frame)) {
	if t.dir == "" {
		return
	}
	for _, rank := range ranks {
		if text, err := files.Read(filepath.Join(t.dir, traceName(rank)), trace.MaxBytes); err == nil {
			for first := true; first || len(text) > 0; first = false {
				n := min(len(text), keptBytes)
				send(frame{Kept: &tracePiece{Rank: rank, First: first, Bytes: text[:n]}})
				text = text[n:]
			}
		}
	}
}

// remove removes it.
func (t *traces) remove() {
	if t.dir != "" {
		os.RemoveAll(t.dir)
	}
}
