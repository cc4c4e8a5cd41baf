package costs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/levels/strictjson"
)

// costEntry and pipelineEntry are lines of a book's file.
type (
	costEntry struct {
		Key Key `json:"key"`
		Cost
	}
	pipelineEntry struct {
		Key Key `json:"key"`
		Pipeline
	}
)

// MarshalJSON writes the book: the same bytes for the same content, sorted by key.
func (b *Book) MarshalJSON() ([]byte, error) {
	file := struct {
		Provenance Provenance      `json:"provenance"`
		Costs      []costEntry     `json:"costs"`
		Pipelines  []pipelineEntry `json:"pipelines"`
	}{b.Provenance, []costEntry{}, []pipelineEntry{}}
	for _, k := range b.Keys() {
		file.Costs = append(file.Costs, costEntry{k, b.costs[k]})
	}
	for _, k := range b.PipelineKeys() {
		file.Pipelines = append(file.Pipelines, pipelineEntry{k, b.pipelines[k]})
	}
	return json.Marshal(file)
}

// Load reads a file of [Book.MarshalJSON] and checks all of it. The error lists all complaints,
// each with name:line.
func Load(name string, data []byte) (*Book, error) {
	r, err := strictjson.NewReader(name, data)
	if err != nil {
		return nil, err
	}
	l := loader{Reader: r, book: &Book{}}
	l.loadFile()
	if err := l.Err(); err != nil {
		return nil, err
	}
	return l.book, nil
}

// loader reads a book's file.
type loader struct {
	*strictjson.Reader
	book *Book
}

func (l *loader) loadFile() {
	keys := []string{"provenance", "costs", "pipelines"}
	l.Object("a book", keys, len(keys), func(key string) {
		switch key {
		case "provenance":
			l.Decode(&l.book.Provenance, key)
		case "costs":
			l.Array(`"costs"`, l.loadCost)
		case "pipelines":
			l.Array(`"pipelines"`, l.loadPipeline)
		}
	})
}

func (l *loader) loadCost() {
	line := l.Line()
	var e costEntry
	if !l.Decode(&e, "a cost") {
		return
	}
	err := errors.Join(e.Key.check(), e.Summary.check(), checkTimes("leaders_ns", e.Leaders))
	if err == nil && !l.book.Add(e.Key, e.Cost) {
		err = fmt.Errorf("key %q is given twice", e.Key)
	}
	if err != nil {
		l.Complain(line, "%w", err)
	}
}

func (l *loader) loadPipeline() {
	line := l.Line()
	var e pipelineEntry
	if !l.Decode(&e, "a pipeline") {
		return
	}
	_, twice := l.book.Pipeline(e.Key)
	err := errors.Join(e.Key.check(), e.Pipeline.check())
	if err == nil && twice {
		err = fmt.Errorf("key %q is given twice", e.Key)
	}
	if err != nil {
		l.Complain(line, "%w", err)
		return
	}
	l.book.AddPipeline(e.Key, e.Pipeline)
}

// check complains of a key that a file lacks.
func (k Key) check() error {
	if k == (Key{}) {
		return errors.New("key is missing")
	}
	return nil
}

func (s Summary) check() error {
	if s.N < 1 || s.Outliers < 0 || s.Outliers > s.N {
		return fmt.Errorf("n %d, outliers %d: there must be samples, and not more outliers", s.N, s.Outliers)
	}
	if !slices.IsSorted([]float64{0, s.Min, s.P50, s.P95, s.Max}) || s.Mean < s.Min || s.Mean > s.Max || s.Half < 0 {
		return fmt.Errorf("min %v, p50 %v, p95 %v, max %v, mean %v, half %v: not those of one set of times", s.Min, s.P50, s.P95, s.Max, s.Mean, s.Half)
	}
	return nil
}

func (p Pipeline) check() error {
	errs := []error{p.Whole.check()}
	if p.Segments < 1 || p.Phases < 1 || len(p.Leaders) == 0 {
		errs = append(errs, fmt.Errorf("segments %d, phases %d, %d leaders: there must be at least one of each", p.Segments, p.Phases, len(p.Leaders)))
	}
	for i, c := range p.Leaders {
		if n := len(c.Done); n != p.Segments {
			errs = append(errs, fmt.Errorf("leader %d: %d times for %d segments", i, n, p.Segments))
		}
		errs = append(errs, checkTimes("done_ns", c.Done), checkTimes("alone_ns, fill_ns, stable_ns, drain_ns", []float64{c.Alone, c.Fill, c.Stable, c.Drain}))
	}
	return errors.Join(errs...)
}

func checkTimes(what string, all []float64) error {
	for _, v := range all {
		if v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Errorf("%s: %v; a time is 0 or more", what, v)
		}
	}
	return nil
}
