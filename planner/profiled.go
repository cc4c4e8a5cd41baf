package planner

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/planner/profile"
	"github.com/tierflow/tierflow/tasks"
)

// callCounters counts the calls of a world's rank 0. A nil one counts nothing.
type callCounters struct {
	file  string
	on    *levels.Topology
	begun time.Time

	mu  sync.Mutex
	all map[profile.Call]*callCounter
}

// callCounter counts calls of one kind. A nil one does not. Any goroutine may call it.
type callCounter struct{ n, ns atomic.Int64 }

// profile returns the counters of the job's calls; nil: nobody asks for a profile. It is an error if
// there is no place for the file.
func (o *settings) profile(on *levels.Topology) (*callCounters, error) {
	name, origin := o.Profile, o.origin["Profile"]
	if name == "" {
		return nil, nil
	}
	if info, err := os.Stat(name); name != profile.Summary && err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: %s is a folder; allowed are names of files", origin, name)
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return nil, fmt.Errorf("%s: no folder for the profile: %w", origin, err)
	}
	return &callCounters{file: name, on: on, begun: time.Now(), all: map[profile.Call]*callCounter{}}, nil
}

// of returns the counter of a kind of calls.
func (c *callCounters) of(r tasks.Request, on *levels.Topology, plan tasks.Plan) *callCounter {
	key := profile.Of(r, on, plan)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[key] == nil {
		c.all[key] = &callCounter{}
	}
	return c.all[key]
}

// write writes the profile, if there is one.
func (c *callCounters) write() error {
	if c == nil {
		return nil
	}
	p := profile.Profile{
		Version: profile.Version, Program: filepath.Base(os.Args[0]), Date: time.Now().UTC().Format(time.RFC3339),
		Machine: c.on.String(), Seconds: time.Since(c.begun).Seconds(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for kind, n := range c.all {
		if kind.Calls, kind.Seconds = n.n.Load(), float64(n.ns.Load())/1e9; kind.Calls > 0 {
			p.Calls = append(p.Calls, kind)
		}
	}
	if c.file == profile.Summary {
		fmt.Fprint(os.Stderr, p.Text()) // in one piece: launchers mix lines of ranks
		return nil
	}
	data, err := p.Encode()
	if err == nil {
		err = files.Output(c.file, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return nil
}

// begin returns the time of a call's begin.
func (c *callCounter) begin() (at time.Time) {
	if c != nil {
		at = time.Now()
	}
	return at
}

// end counts the time in a call since begin, and the call itself if it has ended well.
func (c *callCounter) end(begun time.Time, ended bool) {
	if c == nil {
		return
	}
	c.ns.Add(int64(time.Since(begun)))
	if ended {
		c.n.Add(1)
	}
}
