package tasks

import "fmt"

// Region names a piece of memory for steps, without its address. The zero value is no memory.
type Region uint8

// The regions.
const (
	_       Region = iota
	Send           // the caller's send buffer
	Recv           // the caller's receive buffer; Bcast's only one
	Scratch        // private to the rank, belongs to the request
	Slot           // this rank's slots in its node's shared memory
	Backup         // shared memory for data that can't be read in place; see submodules.ShareStep
	Peer           // memory a peer exposed; Span.Ref is the await step that delivered it
	maxRegion
)

// Regions is more than the largest region.
const Regions = int(maxRegion)

var regionNames = [maxRegion]string{Send: "send", Recv: "recv", Scratch: "scratch", Slot: "slot", Backup: "backup", Peer: "peer"}

// String is the region's name.
func (r Region) String() string {
	if r == 0 || r >= maxRegion {
		return fmt.Sprintf("Region(%d)", uint8(r))
	}
	return regionNames[r]
}

// Span is a contiguous part of a region, in bytes. Offsets into Send and Recv
// count from the base of the running pass.
type Span struct {
	Region Region
	Ref    int32
	Off    int64
	Len    int64
}

// Cut returns the n bytes of s from off.
func (s Span) Cut(off, n int64) Span {
	s.Off += off
	s.Len = n
	return s
}

// TotalLen returns the bytes of some spans together.
func TotalLen(spans []Span) (n int64) {
	for _, s := range spans {
		n += s.Len
	}
	return n
}

// Shard is the i-th of n parts of s, by whole elements of so many bytes; the first
// ones have an element more if they don't divide, and there is none beyond n.
func (s Span) Shard(i, n int, elem int64) Span {
	elems := s.Len / elem
	short, long := elems/int64(n), elems%int64(n)
	begin := func(i int) int64 {
		k := int64(min(i, n))
		return (k*short + min(k, long)) * elem
	}
	return s.Cut(begin(i), begin(i+1)-begin(i))
}

// String prints region[from:to].
func (s Span) String() string {
	if s.Region == Peer {
		return fmt.Sprintf("peer(%d)[%d:%d]", s.Ref, s.Off, s.Off+s.Len)
	}
	return fmt.Sprintf("%v[%d:%d]", s.Region, s.Off, s.Off+s.Len)
}
