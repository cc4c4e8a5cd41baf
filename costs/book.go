package costs

import (
	"maps"
	"slices"

	"github.com/tierflow/tierflow/tasks"
)

// Cost is what a task or stage task takes, in nanoseconds.
type Cost struct {
	Summary // of the slowest leader's time in each repetition
	// Leaders is the median time of each leader, by group of level 0; 0 for a
	// leader that has no such task.
	Leaders []float64 `json:"leaders_ns"`
}

// Provenance says where and how costs were measured. Package costs only keeps it.
type Provenance struct {
	Hosts      []string `json:"hosts,omitempty"`
	Ranks      string   `json:"ranks,omitempty"`      // goroutines or processes, and how many
	Links      string   `json:"links,omitempty"`      // between nodes: real, or what was emulated
	Congestion string   `json:"congestion,omitempty"` // TCP congestion control
	Kernel     string   `json:"kernel,omitempty"`
	Date       string   `json:"date,omitempty"`
	Method     string   `json:"method,omitempty"`
	Budget     string   `json:"budget,omitempty"`
}

// Book is a table of measured costs. The zero value is empty and ready to use.
// It is not safe for concurrent use: predictions count what they use.
type Book struct {
	Provenance Provenance
	costs      map[Key]Cost
	pipelines  map[Key]Pipeline
	curves     map[Key]*Curve // of units; their key has no segment
	uses       map[Key]*Use
}

// Add puts a cost into the book, unless it has one for that key: the first one
// measured stays. It reports whether it was new.
func (b *Book) Add(k Key, c Cost) bool {
	if _, ok := b.costs[k]; ok {
		return false
	}
	if b.costs == nil {
		b.costs = map[Key]Cost{}
	}
	b.costs[k] = c
	return true
}

// AddPipeline is [Book.Add] for a pipeline; but one of more segments replaces
// one of fewer.
func (b *Book) AddPipeline(k Key, p Pipeline) bool {
	if old, ok := b.pipelines[k]; ok && old.Segments >= p.Segments {
		return false
	}
	if b.pipelines == nil {
		b.pipelines = map[Key]Pipeline{}
	}
	b.Curve(k).addGroup(k, p)
	b.pipelines[k] = p
	return true
}

// Cost finds a cost.
func (b *Book) Cost(k Key) (Cost, bool) {
	c, ok := b.costs[k]
	return c, ok
}

// Pipeline finds a pipeline.
func (b *Book) Pipeline(k Key) (Pipeline, bool) {
	p, ok := b.pipelines[k]
	return p, ok
}

// Keys lists the keys of costs, sorted.
func (b *Book) Keys() []Key { return slices.SortedFunc(maps.Keys(b.costs), Key.Compare) }

// PipelineKeys lists the keys of pipelines, sorted.
func (b *Book) PipelineKeys() []Key { return slices.SortedFunc(maps.Keys(b.pipelines), Key.Compare) }

// Use is for what an entry has been used since the book was made or loaded.
type Use struct {
	Key         Key
	Predictions int
	Sizes       int // different message sizes
	Collectives int // different collectives
	sizes       map[int64]bool
	collectives map[tasks.Collective]bool
}

// countUse counts one prediction for r.
func (b *Book) countUse(k Key, r tasks.Request) {
	if b.uses == nil {
		b.uses = map[Key]*Use{}
	}
	u := b.uses[k]
	if u == nil {
		u = &Use{Key: k, sizes: map[int64]bool{}, collectives: map[tasks.Collective]bool{}}
		b.uses[k] = u
	}
	u.Predictions++
	u.sizes[r.Count] = true
	u.collectives[r.Coll] = true
}

// Uses says how often each entry that was used at all has been, sorted by key: how
// far measurements were reused across message sizes and collectives.
func (b *Book) Uses() []Use {
	all := make([]Use, 0, len(b.uses))
	for _, k := range slices.SortedFunc(maps.Keys(b.uses), Key.Compare) {
		u := *b.uses[k]
		u.Sizes, u.Collectives, u.sizes, u.collectives = len(u.sizes), len(u.collectives), nil, nil
		all = append(all, u)
	}
	return all
}
