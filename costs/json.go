package costs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
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

// Load reads what [Book.MarshalJSON] wrote and checks all of it. The error lists
// what is wrong, each with name:line.
func Load(name string, data []byte) (*Book, error) {
	// With the syntax known to be right, what follows can only meet wrong types.
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		line := 1
		if at, ok := errors.AsType[*json.SyntaxError](err); ok {
			line += bytes.Count(data[:max(at.Offset-1, 0)], []byte("\n"))
		}
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	l := loader{name: name, data: data, dec: json.NewDecoder(bytes.NewReader(data)), book: &Book{}}
	l.dec.DisallowUnknownFields()
	l.file()
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	return l.book, nil
}

// loader walks through JSON of right syntax.
type loader struct {
	name string
	data []byte
	dec  *json.Decoder
	book *Book
	errs []error
}

// maxComplaints keeps an error readable.
const maxComplaints = 10

func (l *loader) complain(line int, err error) {
	switch len(l.errs) {
	case maxComplaints:
		l.errs = append(l.errs, fmt.Errorf("%s:%d: and more", l.name, line))
	case maxComplaints + 1:
	default:
		l.errs = append(l.errs, fmt.Errorf("%s:%d: %w", l.name, line, err))
	}
}

// next is where the next value begins, and its line.
func (l *loader) next() (at, line int) {
	at = int(l.dec.InputOffset())
	for at < len(l.data)-1 && strings.IndexByte(" \t\r\n,:", l.data[at]) >= 0 {
		at++
	}
	return at, 1 + bytes.Count(l.data[:at], []byte("\n"))
}

func (l *loader) file() {
	at, line := l.next()
	if l.data[at] != '{' {
		l.complain(line, errors.New("a book must be an object with the keys provenance, costs and pipelines"))
		return
	}
	_, _ = l.dec.Token() // as all syntax was, checked
	given := map[string]bool{}
	for l.dec.More() {
		_, line := l.next()
		token, _ := l.dec.Token()
		key, _ := token.(string)
		if given[key] {
			l.complain(line, fmt.Errorf("key %q is given twice", key))
		}
		given[key] = true
		switch key {
		case "provenance":
			l.decode(&l.book.Provenance)
		case "costs":
			l.array(key, l.cost)
		case "pipelines":
			l.array(key, l.pipeline)
		default:
			l.complain(line, fmt.Errorf("unknown key %q; known are provenance, costs and pipelines", key))
			_ = l.dec.Decode(new(json.RawMessage))
		}
	}
	for _, key := range []string{"provenance", "costs", "pipelines"} {
		if !given[key] {
			l.complain(line, fmt.Errorf("key %q is missing", key))
		}
	}
}

func (l *loader) array(key string, entry func()) {
	at, line := l.next()
	if l.data[at] != '[' {
		l.complain(line, fmt.Errorf("%q must be an array", key))
		_ = l.dec.Decode(new(json.RawMessage))
		return
	}
	_, _ = l.dec.Token()
	for l.dec.More() {
		entry()
	}
	_, _ = l.dec.Token()
}

// decode reads one value. The decoder goes on behind it even if it doesn't fit.
func (l *loader) decode(v any) bool {
	_, line := l.next()
	var raw json.RawMessage
	_ = l.dec.Decode(&raw)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		l.complain(line, err)
		return false
	}
	return true
}

func (l *loader) cost() {
	_, line := l.next()
	var e costEntry
	if !l.decode(&e) {
		return
	}
	err := errors.Join(e.Key.check(), e.Summary.check(), checkTimes("leaders_ns", e.Leaders))
	if err == nil && !l.book.Add(e.Key, e.Cost) {
		err = fmt.Errorf("key %q is given twice", e.Key)
	}
	if err != nil {
		l.complain(line, err)
	}
}

func (l *loader) pipeline() {
	_, line := l.next()
	var e pipelineEntry
	if !l.decode(&e) {
		return
	}
	_, twice := l.book.Pipeline(e.Key)
	err := errors.Join(e.Key.check(), e.Pipeline.check())
	if err == nil && twice {
		err = fmt.Errorf("key %q is given twice", e.Key)
	}
	if err != nil {
		l.complain(line, err)
		return
	}
	l.book.AddPipeline(e.Key, e.Pipeline)
}

// check says what a key of a file lacks.
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
