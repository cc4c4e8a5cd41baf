package launcher

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
)

// Blame is the first failure that a rank has met.
type Blame struct {
	Rank    levels.Rank `json:"rank"`              // the failed one, by the number of its process: this one, or another; -1: no one in particular
	Why     string      `json:"why"`               // without the rank
	Aborted bool        `json:"aborted,omitempty"` // it has ended the job on purpose
}

const maxWhy = 1 << 10

// Blamer returns a function that tells the launcher, nil if the launcher doesn't ask.
func Blamer(v *Vars) func(b Blame) {
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
	return func(b Blame) {
		b.Why = strings.ToValidUTF8(b.Why[:min(len(b.Why), maxWhy)], "")
		line, _ := json.Marshal(b) // of plain fields: can't fail
		pipe(append(line, '\n'))
	}
}

// ReadBlame returns the blame in the pipe of a rank after its end, the first one, or the one that has ended the job; nil: there is none.
func ReadBlame(pipe *os.File) *Blame {
	var said [16 << 10]byte // two lines, whatever JSON makes of a byte
	var first *Blame
	for line := range strings.Lines(string(said[:readNow(pipe, said[:])])) {
		var b Blame
		if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(line), &b) != nil || b.Rank < -1 {
			break
		}
		if b.Aborted {
			return &b
		}
		first = cmp.Or(first, &b)
	}
	return first
}
