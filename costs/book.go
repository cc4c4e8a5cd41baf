package costs

import (
	"maps"
	"slices"
)

// Cost is what a task or stage task takes, in nanoseconds.
type Cost struct {
	Summary // of the slowest leader's time in each repetition
	// Leaders is the median time of each leader, by group of level 0; 0 for a leader without such a
	// task.
	Leaders []float64 `json:"leaders_ns"`
}

// Provenance says how costs were measured, and on which hosts. Package costs only keeps it.
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

// Book is a table of measured costs. The zero value is empty and ready to use. It is not safe for
// concurrent use: predictions enter curves.
type Book struct {
	Provenance Provenance
	costs      map[Key]Cost
	pipelines  map[Key]Pipeline
	curves     map[Key]*Curve // of units; their key has no segment
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

// AddPipeline puts a pipeline into the book, unless it has one of as many segments for that key.
func (b *Book) AddPipeline(k Key, p Pipeline) {
	if old, ok := b.pipelines[k]; ok && old.Segments >= p.Segments {
		return
	}
	if b.pipelines == nil {
		b.pipelines = map[Key]Pipeline{}
	}
	b.Curve(k).addGroup(k, p)
	b.pipelines[k] = p
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
