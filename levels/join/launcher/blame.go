package launcher

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// BlameVariable names the descriptor of a pipe on which a rank tells its launcher whose failure
// it has met first: a line of JSON, a [Blame].
const BlameVariable = "TIERFLOW_BLAME_FD"

// Blame is what a rank says of the failure that it has met first.
type Blame struct {
	Rank levels.Rank `json:"rank"` // where it was: this one, or another
	Why  string      `json:"why"`  // without the rank
}

const maxWhy = 1 << 10

// Blamer returns what tells the launcher, nil if the launcher doesn't ask.
func Blamer(v *Vars) func(rank levels.Rank, why string) {
	text := v.Get(BlameVariable)
	if text == "" {
		return nil
	}
	fd, ok := v.Number(BlameVariable, 3, 1<<20)
	if !ok {
		return nil
	}
	pipe := takePipe(fd)
	if pipe == nil {
		return nil // a program in between has closed it
	}
	return func(rank levels.Rank, why string) {
		line, _ := json.Marshal(Blame{rank, strings.ToValidUTF8(why[:min(len(why), maxWhy)], "")}) // it has no field that can fail
		pipe(append(line, '\n'))
	}
}

// ReadBlame returns what a rank that has ended left in its pipe; nil: nothing.
func ReadBlame(pipe *os.File) *Blame {
	var said [8 << 10]byte // a line, whatever JSON makes of a byte
	line, _, whole := strings.Cut(string(said[:readNow(pipe, said[:])]), "\n")
	var b Blame
	if !whole || json.Unmarshal([]byte(line), &b) != nil || b.Rank < 0 {
		return nil
	}
	return &b
}
