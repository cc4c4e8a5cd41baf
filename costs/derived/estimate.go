package derived

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Experiment is a request with a plan, followed by a linear gather without synchronization
// (section 4.2). NS is how long both took on the root. The gather is an algorithm of its
// own, with its own times: the paper has it take those of the bcast.
type Experiment struct {
	Request tasks.Request
	Plan    tasks.Plan
	Gather  Gather
	NS      float64 // above 0
}

// Gather is the time of a linear gather, ns, 0 or more: First until one rank's message is
// there, and Next for each further one. All come at once.
type Gather struct {
	First float64 `json:"first_ns"`
	Next  float64 `json:"next_ns"`
}

// After returns when the last message is there, ns, if each rank sends its own at its end. ends[0]
// is the root's; the root sends none. Equal ends come one after the other.
func (g Gather) After(ends []float64) float64 {
	last := ends[0]
	for _, end := range slices.Sorted(slices.Values(ends[1:])) {
		last = max(last+g.Next, end+g.First)
	}
	return last
}

// timeAlone returns how long an experiment's request took by itself, ns, and its longest path.
func (x *Experiment) timeAlone(t *levels.Topology, reg submodules.Registry, g Gamma, l Line) (float64, Coeff, error) {
	path, err := WalkRequest(x.Request, t, x.Plan, reg, g, l)
	if err != nil {
		return 0, path, err
	}
	paths, err := WalkRanks(x.Request, t, x.Plan, reg, g, l)
	if err != nil {
		return 0, path, err
	}
	ends := make([]float64, len(paths))
	for rank, c := range paths {
		ends[rank] = l.NS(c)
	}
	// Messages sent before the last end are there by then.
	gather := x.Gather.After(ends) - slices.Max(ends)
	return max(x.NS-gather, x.NS/most), path, nil
}

// most bounds a gather's part of an experiment to 1 − 1/most.
const most = 4

// rounds is how often [Estimate] looks for the longest path: it depends on the time of messages.
const rounds = 3

// Estimate returns α and β of an algorithm from experiments with it on t. combine is the time of a
// byte of a reduction, ns.
func Estimate(t *levels.Topology, reg submodules.Registry, g Gamma, combine float64, all []Experiment) (Line, error) {
	l := Line{Alpha: 1e4, Beta: 1, Combine: combine}
	rows := make([]Row, len(all))
	for range rounds {
		for i := range all {
			ns, path, err := all[i].timeAlone(t, reg, g, l)
			if err != nil {
				return l, err
			}
			rows[i] = Row{path, ns}
		}
		var err error
		if l, err = Fit(rows, combine); err != nil {
			return l, fmt.Errorf("%v: %w", all[0].Plan, err)
		}
	}
	return l, nil
}

// Parameters hold the measured numbers of bcasts on a machine.
type Parameters struct {
	Gamma      Gamma
	Algorithms map[string]Algorithm
}

// Algorithm holds the measured numbers of one algorithm.
type Algorithm struct {
	Line
	Off []Deviation // by bytes, ascending; empty: none is known
}

// Deviation is how many times as long as its model an experiment took. From some size on messages
// wait for credit, for instance: no line has that.
type Deviation struct {
	Bytes  int64
	Factor float64 // above 0
}

// Deviations compares experiments with one algorithm with its line. Their requests must
// differ in the bytes.
func Deviations(t *levels.Topology, reg submodules.Registry, g Gamma, l Line, all []Experiment) ([]Deviation, error) {
	var off []Deviation
	for i := range all {
		ns, path, err := all[i].timeAlone(t, reg, g, l)
		if err != nil {
			return nil, err
		}
		if of := ns / l.NS(path); isPositive(of) {
			off = append(off, Deviation{all[i].Request.Bytes(), of})
		}
	}
	slices.SortStableFunc(off, func(a, b Deviation) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return slices.CompactFunc(off, func(a, b Deviation) bool { return a.Bytes == b.Bytes }), nil
}

// factor interpolates between two sizes, both bytes and factors by their logarithms. Beyond the
// measured sizes it is that of the next one. Sizes with segments that leave in turns say nothing of others.
func (a *Algorithm) factor(m Model, bytes, segment int64) float64 {
	off := slices.DeleteFunc(slices.Clone(a.Off), func(d Deviation) bool {
		return m.takesTurns(d.Bytes, segment) != m.takesTurns(bytes, segment)
	})
	if len(off) == 0 {
		off = a.Off
	}
	if len(off) == 0 {
		return 1
	}
	i, exact := slices.BinarySearchFunc(off, bytes, func(d Deviation, n int64) int { return cmp.Compare(d.Bytes, n) })
	switch {
	case exact || i == 0:
		return off[i].Factor
	case i == len(off):
		return off[i-1].Factor
	}
	low, high := off[i-1], off[i]
	part := math.Log(float64(bytes)/float64(low.Bytes)) / math.Log(float64(high.Bytes)/float64(low.Bytes))
	return low.Factor * math.Pow(high.Factor/low.Factor, part)
}

// Priced is an algorithm and what it takes.
type Priced struct {
	Algorithm string
	NS        float64
}

// NS returns how long a bcast of bytes among so many ranks takes by an algorithm in segments of so many bytes, ns;
// 0: in one piece. ok is false if the parameters have none of it.
func (p *Parameters) NS(algorithm string, ranks int, bytes, segment int64) (ns float64, ok bool) {
	m, known := Bcast(algorithm)
	a, measured := p.Algorithms[algorithm]
	if !known || !measured {
		return 0, false
	}
	return a.Line.NS(m.Coeff(ranks, bytes, segment, p.Gamma)) * a.factor(m, bytes, segment), true
}

// Rank returns all algorithms, the fastest first, with segments of so many bytes where they have any.
func (p *Parameters) Rank(ranks int, bytes, segment int64) (all []Priced) {
	for _, m := range Models() {
		if ns, ok := p.NS(m.Algorithm, ranks, bytes, m.segment(segment)); ok {
			all = append(all, Priced{m.Algorithm, ns})
		}
	}
	slices.SortStableFunc(all, func(a, b Priced) int { return cmp.Compare(a.NS, b.NS) })
	return all
}

// Plan returns the plan of a bcast by an algorithm on t, in segments of so many bytes.
func (m Model) Plan(t *levels.Topology, segment int64) tasks.Plan {
	p := tasks.Plan{Shape: tasks.Flat, Segment: tasks.Whole, Window: 1}
	k := t.Depth() - 1 // the level of a flat shape's tasks
	return p.Set(string(t.Level(k).Symbol)+"b", tasks.Choice{Submodule: submodules.Adapt, Algorithm: m.Algorithm, Inner: m.segment(segment)})
}

// segment returns the segment of a model where others have so many bytes; 0: it has none.
func (m Model) segment(others int64) int64 {
	if m.Segmented {
		return others
	}
	return 0
}
