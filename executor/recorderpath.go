package executor

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/tierflow/tierflow/levels"
)

// recorderPath is the place of a world's recordings. The zero value is nowhere.
type recorderPath struct {
	path   string
	number int // among the worlds of this process recording there, from 1 on
}

// recorderPaths are the paths in use. Files are the process's, not a world's, and so is this.
var recorderPaths = pathsInUse{used: map[recorderPath]bool{}}

type pathsInUse struct {
	mu   sync.Mutex
	used map[recorderPath]bool
}

// take takes the first free number.
func (p *pathsInUse) take(path string) recorderPath {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := recorderPath{path, 1}
	for p.used[r] {
		r.number++
	}
	p.used[r] = true
	return r
}

// release frees the number.
func (r recorderPath) release() {
	recorderPaths.mu.Lock()
	defer recorderPaths.mu.Unlock()
	delete(recorderPaths.used, r)
}

// file returns the name of a rank's file.
func (r recorderPath) file(rank levels.Rank) string {
	name := strings.ReplaceAll(r.path, "%r", strconv.Itoa(int(rank)))
	if r.number > 1 {
		name += fmt.Sprintf(".w%d", r.number)
	}
	return name
}
