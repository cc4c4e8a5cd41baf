package launcher

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
)

// Blame is the first failure that a rank has met.
type Blame struct {
	Rank levels.Rank `json:"rank"` // the failed one: this one, or another; -1: no one in particular
	Why  string      `json:"why"`  // without the rank
}

const maxWhy = 1 << 10

// Blamer returns a function that tells the launcher, nil if the launcher doesn't ask.
func Blamer(v *Vars) func(rank levels.Rank, why string) {
	text := v.Get(env.BlameFD)
	if text == "" {
		return nil
	}
	fd, ok := v.Number(env.BlameFD, 3, 1<<20)
	if !ok {
		return nil
	}
	pipe := takePipe(fd)
	if pipe == nil {
		return nil // a program in between has closed it
	}
	return func(rank levels.Rank, why string) {
		line, _ := json.Marshal(Blame{rank, strings.ToValidUTF8(why[:min(len(why), maxWhy)], "")}) // of plain fields: can't fail
		pipe(append(line, '\n'))
	}
}

// ReadBlame returns the blame in the pipe of a rank after its end; nil: there is none.
func ReadBlame(pipe *os.File) *Blame {
	var said [8 << 10]byte // a line, whatever JSON makes of a byte
	line, _, whole := strings.Cut(string(said[:readNow(pipe, said[:])]), "\n")
	var b Blame
	if !whole || json.Unmarshal([]byte(line), &b) != nil || b.Rank < -1 {
		return nil
	}
	return &b
}
