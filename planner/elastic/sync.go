package elastic

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// Part is some memory for [Sync] to make equal on all ranks. Its length is the same on all ranks.
type Part struct {
	Name string // for errors; the same on all ranks
	Data []byte
	err  error // why it can't be one
}

// PartOf returns the memory of a slice as a part. T holds no pointers, as in a collective.
func PartOf[T any](name string, data []T) Part {
	_, err := tasks.ElementOf[T]()
	return Part{name, inside.Bytes(data), err}
}

// Synced is the result of [Sync].
type Synced struct {
	Revision uint64 // of the state, now on all ranks
	From     int    // the rank with that state before
	Bytes    int64  // sent to all ranks: the same number on each
}

// SyncError says that a rank's state differs from the others' after all.
type SyncError struct {
	Part string // the first different one; empty: the ranks have other parts, or parts of other lengths
	Rank int    // the lowest rank with a difference
}

// Error names the rank and the part.
func (e *SyncError) Error() string {
	if e.Part == "" {
		return fmt.Sprintf("sync: rank %d has other parts, or of other lengths, than the rank with the newest state", e.Rank)
	}
	return fmt.Sprintf("sync: rank %d still differs in part %q", e.Rank, e.Part)
}

// chunk is the unit of comparing and sending, bytes.
const chunk = 1 << 20

// Sync gives all ranks the state of the highest revision. If there are several, the state of most ranks counts, then
// the lowest rank's. Parts are compared by checksums of each MiB (two CRC-32), and only
// MiBs with a difference on some rank travel, once, to all of them together. If all ranks are equal, each
// sends 24 bytes. All ranks call it, with the parts in the same order.
// Checksums guard against accidents, not against attackers.
//
// A rank's parts are written when all of the state has come, and never in part: after an error they are
// as they were, or, if only other ranks met it, as the newest ones. So a rank needs memory for its
// differences a second time.
func Sync(ctx context.Context, c *planner.Comm, revision uint64, parts ...Part) (s Synced, err error) {
	if _, _, err := raw.Under(c); err != nil { // nobody made c
		return s, fmt.Errorf("sync: %w", err)
	}
	for _, p := range parts {
		if p.err != nil {
			return s, fmt.Errorf("sync: part %q: %w", p.Name, p.err)
		}
	}
	mine := sightsOf(parts)
	sums := mine.digests()
	all, err := gatherStandings(ctx, c, standing{revision, digestAll(sums.flat()), shapeOf(parts)})
	if err != nil {
		return s, fmt.Errorf("sync: %w", err)
	}
	s.From = newest(all)
	s.Revision = all[s.From].revision
	if r := differing(all, s.From, func(d standing) uint64 { return d.shape }); r >= 0 {
		return s, &SyncError{Rank: r}
	}
	if differing(all, s.From, func(d standing) uint64 { return d.whole }) < 0 {
		return s, nil
	}
	if s.Bytes, err = takeOver(ctx, c, s.From, sums, mine); err != nil {
		return s, fmt.Errorf("sync: %w", err)
	}
	if err := checkSynced(ctx, c, s.From, parts, mine); err != nil {
		return s, err
	}
	mine.write()
	return s, nil
}

// patchedPart is a part as this rank will have it: chunks from another rank cover those in memory.
type patchedPart struct {
	data []byte
	come map[int][]byte // by number of a chunk
}

// chunk returns the i-th chunk.
func (v *patchedPart) chunk(i int) []byte {
	if b, ok := v.come[i]; ok {
		return b
	}
	return chunksOf(v.data, i, 1)
}

// chunksOf returns n chunks of b, from the i-th one on.
func chunksOf(b []byte, i, n int) []byte { return b[i*chunk : min((i+n)*chunk, len(b))] }

// digests are the checksums of each chunk.
func (v *patchedPart) digests() (each []uint64) {
	for i := range (len(v.data) + chunk - 1) / chunk {
		each = append(each, digest(v.chunk(i)))
	}
	return each
}

// patchedParts are those of all parts.
type patchedParts []*patchedPart

// sightsOf returns the parts as they are.
func sightsOf(parts []Part) (all patchedParts) {
	for _, p := range parts {
		all = append(all, &patchedPart{p.Data, map[int][]byte{}})
	}
	return all
}

// digests are the checksums of each chunk of each part.
func (all patchedParts) digests() (d digests) {
	for _, v := range all {
		d = append(d, v.digests())
	}
	return d
}

// write copies the received chunks into the parts.
func (all patchedParts) write() {
	for _, v := range all {
		for i, b := range v.come {
			copy(v.data[i*chunk:], b)
		}
	}
}

// digests are the checksums of each chunk of each part.
type digests [][]uint64

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// digest is the checksum of some bytes. Both sums are computed by the processor.
func digest(b []byte) uint64 {
	return uint64(crc32.Checksum(b, castagnoli))<<32 | uint64(crc32.ChecksumIEEE(b))
}

// flat lists all checksums.
func (d digests) flat() (all []uint64) {
	for _, each := range d {
		all = append(all, each...)
	}
	return all
}

// digestAll is the checksum of checksums.
func digestAll(sums []uint64) uint64 {
	var b []byte
	for _, s := range sums {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	return digest(b)
}

// standing describes a rank's state to the others; shape is of names and lengths.
type standing struct{ revision, whole, shape uint64 }

// shapeOf is a checksum of names and lengths.
func shapeOf(parts []Part) uint64 {
	var shape []uint64
	for _, p := range parts {
		shape = append(shape, uint64(len(p.Data)), digest([]byte(p.Name)))
	}
	return digestAll(shape)
}

// gatherStandings tells all ranks the standing of each.
func gatherStandings(ctx context.Context, c *planner.Comm, mine standing) ([]standing, error) {
	all := make([]uint64, 3*c.Size())
	if err := planner.Allgather(ctx, c, []uint64{mine.revision, mine.whole, mine.shape}, all); err != nil {
		return nil, err
	}
	each := make([]standing, c.Size())
	for r := range each {
		each[r] = standing{all[3*r], all[3*r+1], all[3*r+2]}
	}
	return each, nil
}

// newest returns the rank with the state for all.
func newest(all []standing) (best int) {
	votes := map[standing]int{}
	for _, s := range all {
		votes[s]++
	}
	for r, s := range all {
		b := all[best]
		if s.revision > b.revision || s.revision == b.revision && votes[s] > votes[b] {
			best = r
		}
	}
	return best
}

// differing returns the lowest rank different from rank from; -1: none.
func differing(all []standing, from int, of func(standing) uint64) int {
	for r, s := range all {
		if of(s) != of(all[from]) {
			return r
		}
	}
	return -1
}

// takeOver sends all chunks with a difference on some rank.
func takeOver(ctx context.Context, c *planner.Comm, from int, mine digests, parts patchedParts) (bytes int64, err error) {
	sums := mine.flat()
	theirs := slices.Clone(sums)
	if err := planner.Bcast(ctx, c, theirs, from); err != nil {
		return 0, err
	}
	own := make([]uint8, len(sums)) // 1: the chunk differs here
	for i := range sums {
		if sums[i] != theirs[i] {
			own[i] = 1
		}
	}
	differs := slices.Clone(own)
	if err := planner.Allreduce(ctx, c, differs, differs, tasks.Bor); err != nil {
		return 0, err
	}
	for i, p := range parts {
		n := len(mine[i])
		sent, err := p.takeChunks(ctx, c, from, differs[:n], own[:n])
		if err != nil {
			return bytes, err
		}
		bytes, differs, own = bytes+sent, differs[n:], own[n:]
	}
	return bytes, nil
}

// mostChunks bounds the chunks of one call: its plan is compiled once for all of that length.
const mostChunks = 16

// takeChunks sends the chunks of a part with a difference on some rank, neighbours together. A rank with a
// difference itself gets them into memory of their own.
func (v *patchedPart) takeChunks(ctx context.Context, c *planner.Comm, from int, differs, own []uint8) (bytes int64, err error) {
	for i := 0; i < len(differs); {
		n := 0
		for n < mostChunks && i+n < len(differs) && differs[i+n] != 0 {
			n++
		}
		if n == 0 {
			i++
			continue
		}
		b := chunksOf(v.data, i, n)
		apart := slices.Contains(own[i:i+n], 1)
		if apart {
			b = make([]byte, len(b))
		}
		if err := planner.Bcast(ctx, c, b, from); err != nil {
			return bytes, err
		}
		bytes += int64(len(b))
		if apart {
			for k := range n {
				v.come[i+k] = chunksOf(b, k, 1)
			}
		}
		i += n
	}
	return bytes, nil
}

// checkSynced compares all parts once more, as they will be.
func checkSynced(ctx context.Context, c *planner.Comm, from int, parts []Part, mine patchedParts) error {
	for i, p := range parts {
		all, err := gatherStandings(ctx, c, standing{whole: digestAll(mine[i].digests())})
		if err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		if r := differing(all, from, func(s standing) uint64 { return s.whole }); r >= 0 {
			return &SyncError{p.Name, r}
		}
	}
	return nil
}
