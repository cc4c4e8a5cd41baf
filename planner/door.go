package planner

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/env"
)

// noDoor is the value of [env.Door] for no door.
const noDoor = "off"

// drawName returns a new name for a job, of 32 random bits.
func drawName() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// doorPlan is the place of a rank's future door. The zero value is none.
type doorPlan struct {
	root string
	info door.Info
}

// planDoor returns the place for a rank's door, in a job that is managed or not.
func planDoor(job *join.Job, name jobName, managed bool) (p doorPlan, err error) {
	p.info = door.Info{Job: name.Job, Since: name.Began, Rank: int(job.Rank), Ranks: job.Size}
	for r := range levels.Rank(job.Size) {
		p.info.Nodes = append(p.info.Nodes, job.Topology.NodeName(r))
	}
	setting := os.Getenv(env.Door)
	if setting == noDoor || setting == "" && !managed || !door.IsName(name.Job) {
		return p, nil
	}
	if setting != "" && !filepath.IsAbs(setting) {
		return p, fmt.Errorf("%s=%q; allowed are off and a folder's absolute path", env.Door, setting)
	}
	p.root = door.Folder(setting)
	return p, nil
}

// dumpInto lets a rank keep snapshots of its job in the folder of [env.DumpDir], which it makes if there is
// none.
func (p *doorPlan) dumpInto(c *proc.Config, o *settings) error {
	dir, origin := o.DumpDir, o.origin["DumpDir"]
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	info, log := p.info, o.logger()
	c.Dump = func(states []flight.State, f *verdict.Finding) {
		s := door.Snapshot{Job: info.Job, Taken: time.Now(), Nodes: info.Nodes, States: states, Found: f}
		err := s.Keep(dir, info.Rank)
		if err == nil && f != nil {
			err = files.Write(filepath.Join(dir, "verdict.txt"), []byte(f.String()+"\n"), 0o600)
		}
		if err != nil {
			log.Warn("no snapshot could be kept", "err", err)
		}
	}
	return nil
}

// lookThrough lets the ranks of a world see the states of ranks of their node, even if these can't answer. Without doors
// they see no more than that one is stopped.
func (p *doorPlan) lookThrough(c *proc.Config, job *join.Job) {
	c.Nodes = p.info.Nodes
	if p.root == "" {
		c.Neighbor = func(r levels.Rank) (flight.State, bool) {
			return flight.State{Rank: int(r), Doing: flight.Stopped, PID: job.Peers[r].PID}, job.IsStopped(r)
		}
		return
	}
	dir := p.info.Dir(p.root)
	c.Neighbor = func(r levels.Rank) (flight.State, bool) { return door.Neighbor(dir, int(r)) }
}

// open opens the door of a world's rank. Without one the job runs all the same.
func (p *doorPlan) open(w *world, recorder string, log *slog.Logger) {
	if p.root == "" {
		return
	}
	p.info.Recording = recorder
	if p.info.Rank == 0 {
		door.Sweep(p.root)
	}
	d, err := door.Open(p.root, p.info, w.answerDoor(levels.Rank(p.info.Rank)))
	if err != nil {
		if log == nil && errors.Is(err, door.ErrForeign) && !slices.Contains(p.info.Nodes[:p.info.Rank], p.info.Nodes[p.info.Rank]) {
			log = slog.Default() // one rank of the node says it: no other one can
		}
		if log != nil {
			log.Warn("others can't ask this rank what it is in", "err", err)
		}
		return
	}
	w.door, w.doorRecording = d, p.info.RecordingPath(p.root)
}

// answerDoor returns a function to answer questions with states or the usage of ranks.
func (w *world) answerDoor(me levels.Rank) func(door.Question) door.Answer {
	return func(q door.Question) door.Answer {
		if q.Usage {
			return door.Answer{Usage: w.usageText(me)}
		}
		ranks := []levels.Rank{me}
		if q.All {
			ranks = nil
		} else if len(q.Ranks) > 0 {
			ranks = ranks[:0]
			for _, r := range q.Ranks {
				if r >= 0 && r < w.Size() {
					ranks = append(ranks, levels.Rank(r))
				}
			}
		}
		return door.Answer{States: w.States(ranks)}
	}
}

// usageText is the usage of a rank as JSON; nil once its job is being left.
func (w *world) usageText(me levels.Rank) json.RawMessage {
	for _, j := range openJobs() {
		if j.world == w {
			u := j.usage(me, w.Endpoint(me))
			text, _ := json.Marshal(u) // plain fields
			return text
		}
	}
	return nil
}

// recordByDoor keeps the recordings beside the door: others can read them there when the
// rank is dead. Without room there they stay in the rank's own memory.
func (w *world) recordByDoor() {
	if w.door != nil {
		_ = w.Record(w.doorRecording)
	}
}

// closeDoor closes the door, if there is one.
func (w *world) closeDoor() error {
	if w.door == nil {
		return nil
	}
	return w.door.Close()
}
