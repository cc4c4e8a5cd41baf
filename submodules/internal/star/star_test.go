package star_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/submodules/internal/star"
	"github.com/tierflow/tierflow/submodules/submoduletest"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// by is a submodule with one algorithm, by a medium.
type by struct {
	star.Medium
	slices bool // reduces by slices
}

func (by) Name() string            { return "by" }
func (by) Doc() string             { return "a star of this test" }
func (by) Reach() submodules.Reach { return submodules.SharedNode }
func (by) Algorithms() []submodules.Algorithm {
	return []submodules.Algorithm{{Name: "star", Inner: true, Ops: star.Operations()}}
}

func (b by) Lower(e *submodules.Emitter, c *submodules.Call) error {
	if b.slices && c.Kind.Op == tasks.Reduce {
		star.Slices(e, c, b.Offer)
		return nil
	}
	return star.Lower(e, c, b.Medium)
}

// media are the ways of sm and solo, and those that neither takes.
var media = map[string]by{
	"slots":                  {Medium: star.Medium{Offer: star.InSlot}},
	"slots, short ones sent": {Medium: star.Medium{Offer: star.InSlot, Inline: 24}},
	"reads":                  {Medium: star.Medium{Offer: star.InPlace, Reads: true}},
	"reads, short ones sent": {Medium: star.Medium{Offer: star.InPlace, Reads: true, Inline: 24}},
	"messages":               {Medium: star.Medium{Inline: math.MaxInt64}},
	"slices of slots":        {Medium: star.Medium{Offer: star.InSlot}, slices: true},
	"slices of reads":        {Medium: star.Medium{Offer: star.InPlace, Reads: true}, slices: true},
}

// compile returns the programs of n ranks of one node, in inner segments of so many bytes; 0:
// whole.
func compile(t *testing.T, b by, r tasks.Request, shape tasks.Shape, n int, inner int64) []*submodules.Program {
	t.Helper()
	p := tasks.Plan{Shape: shape, Segment: tasks.Whole, Window: 1}.Set("s", tasks.Choice{Submodule: "by", Inner: inner})
	return submoduletest.Compile(t, r, tasktest.Topology(t, strconv.Itoa(n)), p, submodules.Registry{b})
}

// requests are requests of few elements of four bytes, each by its shapes of one level.
func requests(n int) map[string]func(count int64) (tasks.Request, tasks.Shape) {
	all := map[string]func(count int64) (tasks.Request, tasks.Shape){}
	for _, coll := range tasks.Requestable() {
		for _, shape := range tasks.ShapesOf(coll) {
			for _, inPlace := range []bool{false, true} {
				if !shape.IsFlat() || inPlace && !coll.HasInPlace() {
					continue
				}
				all[fmt.Sprintf("%v by %v, in place %t", coll, shape, inPlace)] = func(count int64) (tasks.Request, tasks.Shape) {
					r := tasktest.Request(coll, 4*count)
					r.InPlace = inPlace
					if r.Rooted() {
						r.Root = levels.Rank(n / 2)
					}
					return r, shape
				}
			}
		}
	}
	return all
}

// TestMedia proves the programs of small groups by every medium: each rank ends up with its
// result, whoever leads, and nobody reads what is still written.
func TestMedia(t *testing.T) {
	for name, b := range media {
		for _, n := range []int{1, 2, 3, 5} {
			for what, request := range requests(n) {
				t.Run(fmt.Sprintf("%s/%s/%d", name, what, n), func(t *testing.T) {
					for _, count := range []int64{0, 1, 6, 7, 23} { // 6 elements are just as long as a message that is sent
						r, shape := request(count)
						for _, inner := range []int64{0, 12} {
							if _, err := check.Programs(compile(t, b, r, shape, n, inner)); err != nil {
								t.Errorf("%d elements, inner segments of %d bytes: %v", count, inner, err)
							}
						}
					}
				})
			}
		}
	}
}

// TestStreams: of the messages from one rank to another at most three are on their way, and as
// many may be: each waits for the third one before it, and for no later one of a bcast.
func TestStreams(t *testing.T) {
	const n, most = 4, 3
	for what, request := range requests(n) {
		r, shape := request(23)
		if shape != tasks.Flat || !r.Coll.HasData() {
			continue
		}
		for _, p := range compile(t, media["messages"], r, shape, n, 12) {
			for _, peer := range p.Peers {
				for _, words := range [][]dag.ID{peer.Out, peer.In} {
					for i := most; i < len(words); i++ {
						if !waits(p, words[i], words[i-most]) {
							t.Errorf("%s: %s doesn't wait for the third one before", what, p.Label(p.Step(words[i])))
						}
						if r.Coll == tasks.Bcast && p.Rank == r.Root && waits(p, words[i], words[i-1]) {
							t.Errorf("%s: %s waits for the one before", what, p.Label(p.Step(words[i])))
						}
					}
				}
			}
		}
	}
}

func waits(p *submodules.Program, id, before dag.ID) bool {
	return p.Reaches([][2]dag.ID{{before, id}})[0]
}

// TestFull: the root of a bcast by scatter and allgather has the message already. It writes
// nothing over it, which must outlive a call that fails.
func TestFull(t *testing.T) {
	r := tasktest.Request(tasks.Bcast, 92)
	r.Root = 1
	for _, name := range []string{"slots", "reads"} {
		for rank, p := range compile(t, media[name], r, tasks.FlatSAG, 4, 12) {
			writes := slices.ContainsFunc(p.Steps(), func(s submodules.Step) bool { return s.Dst.Region == tasks.Recv })
			if writes != (levels.Rank(rank) != r.Root) {
				t.Errorf("%s: rank %d writes to its buffer: %t", name, rank, writes)
			}
		}
	}
}

// TestSlices: all ranks reduce their slice of the message, as equal as elements allow; a
// message of fewer elements than ranks is reduced by the leader alone.
func TestSlices(t *testing.T) {
	const n = 4
	for _, tc := range []struct {
		count int64
		want  []int64 // elements that each rank combines
	}{
		{0, []int64{0, 0, 0, 0}},
		{3, []int64{0, 0, 9, 0}},
		{4, []int64{3, 3, 3, 3}},
		{10, []int64{6, 9, 6, 9}},
	} {
		for _, name := range []string{"slices of slots", "slices of reads"} {
			r := tasktest.Request(tasks.Reduce, 4*tc.count)
			r.Root = 2
			var got []int64
			for _, p := range compile(t, media[name], r, tasks.Flat, n, 0) {
				elements := int64(0)
				for _, s := range p.Steps() {
					if s.Kind == submodules.ReduceStep {
						elements += s.Len() / 4
					}
				}
				got = append(got, elements)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s of %d elements: ranks combine %v, want %v", name, tc.count, got, tc.want)
			}
		}
	}
}

// TestLower returns an error for each operation that isn't among [star.Operations], and emits
// nothing for it.
func TestLower(t *testing.T) {
	for _, op := range tasks.Collectives() {
		if slices.Contains(star.Operations(), op) {
			continue
		}
		c := &submodules.Call{Task: tasks.Task{Kind: tasks.Kind{Symbol: 's', Op: op}, Group: &levels.Group{Ranks: []levels.Rank{0, 1}}}}
		if err := star.Lower(new(submodules.Emitter), c, star.Medium{}); !errors.Is(err, submodules.ErrUnsupported) {
			t.Errorf("%v: error %v, want %v", op, err, submodules.ErrUnsupported)
		}
	}
}
