package fuse

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/tierflow/tierflow/tasks"
)

// DefaultBucket is the bytes of a bucket if the times of calls are unknown.
const DefaultBucket = 1 << 20

// taper is how much smaller the first bucket is, and the last.
const taper = 4

// alignment of tensors in the arena, bytes.
const alignment = 64

// span is a range of elements in the arena: from the first to before the end.
type span struct{ from, end int }

func (s span) len() int { return s.end - s.from }

// Bucket is one of New's buckets.
type Bucket struct {
	Elements int
	Tensors  []int // in the order of becoming ready
}

// Cut returns the buckets of tensors of so many elements each, in the order of their starts.
// They have about so many bytes; elements have size bytes. order is as [Options.Ready].
func Cut(sizes, order []int, bucket int64, size int) ([]Bucket, error) {
	l, err := newLayout(sizes, order, bucket, size)
	if err != nil {
		return nil, err
	}
	all := make([]Bucket, len(l.buckets))
	for k, s := range l.buckets {
		all[k] = Bucket{s.len(), l.parts[k]}
	}
	return all, nil
}

// tensor is the place of a tensor.
type tensor struct {
	span
	first, last int // its buckets; of an empty tensor last < first
}

// layout is the place of all tensors and buckets. It is a function of sizes and order alone.
type layout struct {
	order   []int    // of tensors, as they become ready
	tensors []tensor // by number
	buckets []span
	parts   [][]int // tensors of each bucket, in order
	id      uint32  // equal on ranks with the same sizes, order and buckets
}

// maxBuckets and maxElements bound a layout. In all so many elements end in every address space.
const (
	maxBuckets  = 1 << 20
	maxElements = 1 << 48
)

// newLayout lays tensors out in order, in buckets of so many bytes. Elements have size bytes.
func newLayout(sizes, order []int, bucket int64, size int) (*layout, error) {
	if order == nil {
		for i := range sizes {
			order = append(order, len(sizes)-1-i)
		}
	}
	if err := checkOrder(order, len(sizes)); err != nil {
		return nil, err
	}
	for i, n := range sizes {
		if n < 0 || int64(n) > maxElements {
			return nil, fmt.Errorf("tensor %d has %d elements; allowed are 0 to %d", i, n, int64(maxElements))
		}
	}
	l := &layout{order: slices.Clone(order), tensors: make([]tensor, len(sizes))}
	grain, at := max(1, alignment/size), 0
	for _, i := range order {
		l.tensors[i].span = span{at, at + sizes[i]}
		if at += (sizes[i] + grain - 1) / grain * grain; int64(at) > maxElements {
			return nil, fmt.Errorf("%d tensors have %d elements or more; allowed are %d in all", len(sizes), at, int64(maxElements))
		}
	}
	most := max(grain, int(bucket)/size/grain*grain)
	if n := at / most; n > maxBuckets {
		return nil, fmt.Errorf("%d elements in buckets of %d are %d buckets; allowed are %d", at, most, n, maxBuckets)
	}
	l.cut(most, grain, at)
	l.assign()
	h := fnv.New32a()
	fmt.Fprint(h, sizes, order, l.buckets)
	l.id = h.Sum32()
	return l, nil
}

// checkOrder returns an error unless order has each of n tensors once.
func checkOrder(order []int, n int) error {
	if len(order) != n {
		return fmt.Errorf("an order of %d tensors, but there are %d", len(order), n)
	}
	seen := make([]bool, n)
	for _, i := range order {
		if i < 0 || i >= n || seen[i] {
			return fmt.Errorf("tensor %d in the order twice, or not one of 0 to %d", i, n-1)
		}
		seen[i] = true
	}
	return nil
}

// cut makes the buckets of an arena of total elements, most of them of so many.
//
//	tensors  |9 |8 |7    |6           |5   |4 |3 |2   |1|0|
//	buckets  |  |        |     |      |          |    |   |
//	         first               6 is cut                last
func (l *layout) cut(bucket, grain, total int) {
	small := max(grain, bucket/taper/grain*grain)
	tail := total // begin of the last bucket
	for _, i := range slices.Backward(l.order) {
		t := l.tensors[i]
		if total-t.from > small {
			break
		}
		tail = t.from
	}
	room, from := small, 0
	end := func(at int) {
		if at > from {
			l.buckets = append(l.buckets, span{from, at})
			from, room = at, bucket
		}
	}
	for _, i := range l.order {
		t := l.tensors[i]
		if t.from == tail || t.len() <= bucket && t.end-from > room {
			end(t.from)
		}
		if t.len() <= bucket {
			room = max(room, (t.end-from+grain-1)/grain*grain) // a tensor small enough lies in one bucket
		}
		for t.end-from > room {
			end(from + room)
		}
	}
	end(total)
}

// assign lists the tensors of each bucket, and the buckets of each tensor.
func (l *layout) assign() {
	l.parts = make([][]int, len(l.buckets))
	for i := range l.tensors {
		l.tensors[i].first, l.tensors[i].last = 0, -1
	}
	k := 0
	for _, i := range l.order {
		t := &l.tensors[i]
		if t.len() == 0 {
			continue
		}
		for l.buckets[k].end <= t.from {
			k++
		}
		t.first, t.last = k, k
		l.parts[k] = append(l.parts[k], i)
		for l.buckets[t.last].end < t.end {
			t.last++
			l.parts[t.last] = append(l.parts[t.last], i)
		}
	}
}

// total is the arena's length.
func (l *layout) total() int {
	if len(l.buckets) == 0 {
		return 0
	}
	return l.buckets[len(l.buckets)-1].end
}

// name tells a bucket from others, here and on other ranks.
func (l *layout) name(k int, r tasks.Request) string {
	all := l.parts[k]
	which := fmt.Sprintf("tensor %d", all[0])
	if len(all) > 1 {
		which = fmt.Sprintf("tensors %d … %d", all[0], all[len(all)-1])
	}
	return fmt.Sprintf("bucket %d of %d with %s, sizes and order %08x: %v", k, len(l.buckets), which, l.id, r)
}
