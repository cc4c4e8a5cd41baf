package tune

import (
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// probes chooses the measurements of the tasks methods, by the results so far: first
// pipelines, then plans of one segment, then in turns the plans that look best
// ([probes.races]). The rules:
//
//   - Of plans that differ in several levels' algorithms, only those that differ from
//     a base in one are measured, and times of the others put together ([frame]).
//   - A pipeline is measured once for all sizes; what it shows of one segment by
//     itself is a point of the plan of one segment.
//   - Of segment sizes the middle one comes first, and for plans that are not far
//     from the best with it those at the ends; of message sizes, for plans of one
//     segment, the ends; then the middle between two that are known ([bisect]).
//     Where a plan is far from the best at both, nothing between is measured.
//   - Where the middle of a plan of one segment lies on the line between its
//     neighbours, within its interval or a tenth, nothing else between is measured:
//     latency plus bytes by bandwidth is a line. If a race shows that it isn't,
//     all sizes with a plan not far from the best are measured.
//
// All ranks decide alike, as a meter gives them the same results.
type probes struct {
	*knowledge
	thrift
	frames []*frame
	of     map[string]*frame          // by planKey
	keys   map[string]costs.Key       // of pipelines, by planKey
	priced map[string]table.Candidate // by pipelines, by pointKey
	alone  map[string][]segment       // that a plan of one segment is, by planKey
	limit  []float64                  // what takes longer is far from the best, by request
	rough  []bool                     // where lines are not believed, by request
}

// thrift is how much is left out.
type thrift struct {
	far    float64 // times the best is not worth looking around
	few    int     // of the best are; 0: any number
	racers int     // of each request, the rule's plan among them
	near   float64 // times the best predicted: races along
	close  float64 // times the best predicted: its tasks are measured closely
}

// segment is one of a pipeline, which all messages of its size are.
type segment struct {
	bytes int64
	key   costs.Key // of the pipeline
}

func newProbes(k *knowledge, t thrift) *probes {
	p := &probes{
		knowledge: k, thrift: t, of: map[string]*frame{}, alone: map[string][]segment{},
		keys: map[string]costs.Key{}, priced: map[string]table.Candidate{},
	}
	p.frames = newFrames(k, p.of)
	for _, f := range p.frames {
		for _, q := range f.members {
			p.single(f, q)
		}
	}
	return p
}

// single notes which plan of one segment a pipeline tells about.
func (p *probes) single(f *frame, q tasks.Plan) {
	if f.segment == tasks.Whole || f.shape == tasks.HanLockstep {
		return
	}
	r := p.largest(f.coll, q)
	key, err := costs.PipelineKey(r, p.topology, q)
	if err != nil {
		return
	}
	p.keys[planKey(r, q)] = key
	one := segment{costs.SegmentBytes(r, q), key}
	whole := planKey(r, table.Canonical(q, one.bytes))
	p.alone[whole] = append(p.alone[whole], one)
}

// largest is the largest request that a plan is a candidate for.
func (p *probes) largest(coll tasks.Collective, q tasks.Plan) tasks.Request {
	all := p.where[planKey(tasks.Request{Coll: coll}, q)]
	return p.requests[all[len(all)-1]]
}
