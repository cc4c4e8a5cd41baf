package planner

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tierflow/tierflow/tasks"
)

// Part is some memory that all ranks shall have alike. Its length is the same on all ranks.
type Part struct {
	Name string // for errors; the same on all ranks
	Data []byte
	err  error // why it can't be one
}

// PartOf returns the memory of a slice as a part. T holds no pointers, as in a collective.
func PartOf[T any](name string, data []T) Part {
	_, err := elementOf[T](tasks.Bcast)
	return Part{name, asBytes(data), err}
}

// Synced is what [Sync] has done.
type Synced struct {
	Revision uint64 // of the state that all ranks have now
	From     int    // the rank whose state it is
	Bytes    int64  // that travelled: the same on all ranks
}

// SyncError says that a rank's state differs from that of the others after all.
type SyncError struct {
	Part string // the first of them; empty: the ranks have other parts, or parts of other lengths
	Rank int    // the lowest of them
}

// Error says which rank differs, and in which part.
func (e *SyncError) Error() string {
	if e.Part == "" {
		return fmt.Sprintf("sync: rank %d has other parts, or of other lengths, than the rank with the newest state", e.Rank)
	}
	return fmt.Sprintf("sync: rank %d still differs in part %q", e.Rank, e.Part)
}

// chunk is what is compared, and travels, as a whole, in bytes.
const chunk = 1 << 20

// Sync gives all ranks the state of the highest revision. If there are several, that of most ranks counts, then
// that of the lowest rank. Parts are compared by checksums of each MiB (two CRC-32), and only
// what differs on some rank travels, once, to all of them together. So newcomers get their state, and ranks
// that have it send and take 16 bytes. All ranks call it, with the parts in the same order.
// Checksums guard against accidents, not against attackers.
func Sync(ctx context.Context, c *Comm, revision uint64, parts ...Part) (s Synced, err error) {
	if err := c.usable(ctx); err != nil {
		return s, fmt.Errorf("sync: %w", err)
	}
	for _, p := range parts {
		if p.err != nil {
			return s, fmt.Errorf("sync: part %q: %w", p.Name, p.err)
		}
	}
	mine := digestsOf(parts)
	all, err := gatherStandings(ctx, c, standing{revision, whole(mine.flat()), shapeOf(parts)})
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
	if s.Bytes, err = takeOver(ctx, c, s.From, mine, parts); err != nil {
		return s, fmt.Errorf("sync: %w", err)
	}
	return s, checkSynced(ctx, c, s.From, parts)
}

// digests are the checksums of each chunk of each part.
type digests [][]uint64

// digestsOf computes them.
func digestsOf(parts []Part) (all digests) {
	for _, p := range parts {
		var each []uint64
		for b := p.Data; len(b) > 0; b = b[min(chunk, len(b)):] {
			each = append(each, digest(b[:min(chunk, len(b))]))
		}
		all = append(all, each)
	}
	return all
}

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

// whole is the checksum of checksums.
func whole(sums []uint64) uint64 {
	var b []byte
	for _, s := range sums {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	return digest(b)
}

// standing is what a rank tells of its state; shape is of names and lengths.
type standing struct{ revision, whole, shape uint64 }

// shapeOf is a checksum of names and lengths.
func shapeOf(parts []Part) uint64 {
	var shape []uint64
	for _, p := range parts {
		shape = append(shape, uint64(len(p.Data)), digest([]byte(p.Name)))
	}
	return whole(shape)
}

// gatherStandings tells all ranks the standing of each.
func gatherStandings(ctx context.Context, c *Comm, mine standing) ([]standing, error) {
	all := make([]uint64, 3*c.Size())
	if err := AllgatherNow(ctx, c, []uint64{mine.revision, mine.whole, mine.shape}, all); err != nil {
		return nil, err
	}
	each := make([]standing, c.Size())
	for r := range each {
		each[r] = standing{all[3*r], all[3*r+1], all[3*r+2]}
	}
	return each, nil
}

// newest returns the rank whose state the others take.
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

// differing returns the lowest rank that differs from another one; -1: none.
func differing(all []standing, from int, of func(standing) uint64) int {
	for r, s := range all {
		if of(s) != of(all[from]) {
			return r
		}
	}
	return -1
}

// takeOver sends all that differs on some rank.
func takeOver(ctx context.Context, c *Comm, from int, mine digests, parts []Part) (bytes int64, err error) {
	sums := mine.flat()
	theirs := append([]uint64{}, sums...)
	if err := BcastNow(ctx, c, theirs, from); err != nil {
		return 0, err
	}
	differs := make([]uint8, len(sums))
	for i := range sums {
		if sums[i] != theirs[i] {
			differs[i] = 1
		}
	}
	if err := AllreduceNow(ctx, c, differs, differs, tasks.Bor); err != nil {
		return 0, err
	}
	for i, p := range parts {
		n := len(mine[i])
		sent, err := sendChunks(ctx, c, from, differs[:n], p.Data)
		if err != nil {
			return bytes, err
		}
		bytes, differs = bytes+sent, differs[n:]
	}
	return bytes, nil
}

// mostChunks bounds what travels in one call: its plan is compiled once for all of that length.
const mostChunks = 16

// sendChunks sends the chunks of a part that differ, neighbours together.
func sendChunks(ctx context.Context, c *Comm, from int, differs []uint8, data []byte) (bytes int64, err error) {
	for i := 0; i < len(differs); {
		n := 0
		for n < mostChunks && i+n < len(differs) && differs[i+n] != 0 {
			n++
		}
		if n == 0 {
			i++
			continue
		}
		b := data[i*chunk : min((i+n)*chunk, len(data))]
		if err := BcastNow(ctx, c, b, from); err != nil {
			return bytes, err
		}
		bytes += int64(len(b))
		i += n
	}
	return bytes, nil
}

// checkSynced compares all parts once more.
func checkSynced(ctx context.Context, c *Comm, from int, parts []Part) error {
	for _, p := range parts {
		all, err := gatherStandings(ctx, c, standing{whole: whole(digestsOf([]Part{p}).flat())})
		if err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		if r := differing(all, from, func(s standing) uint64 { return s.whole }); r >= 0 {
			return &SyncError{p.Name, r}
		}
	}
	return nil
}
