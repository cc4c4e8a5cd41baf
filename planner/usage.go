package planner

import (
	"slices"
	"sync"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/internal/inside"
)

// jobs are the open worlds of this process.
var jobs struct {
	sync.Mutex
	next int // number of the next one
	open []*job
}

// job is a world with its number and the topology of all its ranks.
type job struct {
	number   int
	world    *world
	topology *levels.Topology
}

// register lets usages find the world until it is closed.
func (w *world) register(t *levels.Topology) {
	jobs.Lock()
	defer jobs.Unlock()
	jobs.open = append(jobs.open, &job{jobs.next, w, t})
	jobs.next++
}

// forget undoes register.
func (w *world) forget() {
	jobs.Lock()
	defer jobs.Unlock()
	jobs.open = slices.DeleteFunc(jobs.open, func(j *job) bool { return j.world == w })
}

// usages is raw.Usages.
func usages() []inside.Usage {
	var all []inside.Usage
	for _, j := range openJobs() {
		for r := range j.topology.Size() {
			if e := j.world.Endpoint(levels.Rank(r)); e != nil {
				all = append(all, j.usage(levels.Rank(r), e))
			}
		}
	}
	return all
}

// openJobs lists the jobs of this process, by number.
func openJobs() []*job {
	jobs.Lock()
	defer jobs.Unlock()
	return slices.Clone(jobs.open)
}

func (j *job) usage(r levels.Rank, e *executor.Endpoint) inside.Usage {
	u := inside.Usage{World: j.number, Rank: int(r)}
	for k := range j.topology.Depth() {
		u.Levels = append(u.Levels, j.topology.Level(k).Name)
	}
	if guest := j.world.guest; guest != nil {
		if s, ok := guest.TLSState(); ok {
			u.TLS = &s
		}
	}
	u.Activity = e.Activity(len(u.Levels), func(peer levels.Rank) int { return j.topology.Meet(r, peer) })
	return u
}
