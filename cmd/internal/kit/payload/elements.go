package payload

import (
	"bytes"
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// period is the length of a buffer's repeated pattern, elements. It is odd: parts of a message
// are powers of two apart, so one in a wrong place shows.
const period = 251

// input returns one period of a rank's input. It has small whole numbers: sums and products come
// out exactly in every type and in every order.
func input(r tasks.Request, rank, ranks int) []byte {
	size := r.Type.Size()
	all := make([]byte, period*size)
	for i := range period {
		encode(all[i*size:], r.Type, number(r, rank, ranks, i), rank)
	}
	return all
}

// number returns element i of a rank's input. Where sums and products could grow beyond the
// exact, only every so many ranks count.
func number(r tasks.Request, rank, ranks, i int) int {
	turn := rank + i
	if r.Exchanges() {
		turn += 4 * rank // the blocks of a pair differ, be they as short as they may
	}
	switch {
	case !r.Reduces():
		return 1 + scatter(turn)%113
	case r.Op == tasks.Prod:
		if turn%(1+ranks/8) == 0 {
			return 2
		}
		return 1
	case turn%(1+ranks/64) == 0: // at most 64 ranks give at most 3: bf16 is exact up to 256
		return scatter(turn) % 4
	}
	return 0
}

// scatter returns a number without a pattern for each n.
func scatter(n int) int { return int(uint32(n) * 2654435761 >> 16) }

// encode writes a number as an element. index is the index of a Loc.
func encode(dst []byte, t tasks.Datatype, n, index int) {
	order := binary.NativeEndian
	if value, ok := t.Loc(); ok {
		encode(dst, value, n, 0)
		order.PutUint64(dst[8:], uint64(index))
		return
	}
	switch t {
	case tasks.Float16:
		order.PutUint16(dst, uint16(half.NewFloat16(float32(n))))
	case tasks.BFloat16:
		order.PutUint16(dst, uint16(half.NewBFloat16(float32(n))))
	case tasks.Float32, tasks.Complex64:
		order.PutUint32(dst, math.Float32bits(float32(n)))
	case tasks.Float64, tasks.Complex128:
		order.PutUint64(dst, math.Float64bits(float64(n)))
	case tasks.Int8, tasks.Uint8:
		dst[0] = byte(n)
	case tasks.Int16, tasks.Uint16:
		order.PutUint16(dst, uint16(n))
	case tasks.Int32, tasks.Uint32:
		order.PutUint32(dst, uint32(n))
	default:
		order.PutUint64(dst, uint64(n))
	}
}

// Outputs returns one period of a receiving rank's result, for each block of its buffer. A block
// is the root's input, inputs combined rank after rank, or one rank's input; or the rank's own
// part of one of these. A rank without a result has none.
func Outputs(r tasks.Request, me, ranks int) ([][]byte, error) {
	if r.GivesBlocks() {
		all := make([][]byte, ranks)
		for rank := range all {
			all[rank] = input(r, rank, ranks)
			if r.Exchanges() {
				off, _, _ := r.Between(levels.Rank(rank), levels.Rank(me))
				all[rank] = from(all[rank], off)
			}
		}
		return all, nil
	}
	one := input(r, int(r.Root), ranks)
	if r.Reduces() {
		n := r.Combines(levels.Rank(me), ranks)
		if n == 0 {
			return nil, nil
		}
		var err error
		if one, err = combineInputs(r, n, ranks); err != nil {
			return nil, err
		}
	}
	if off, _ := r.Block(levels.Rank(me)); r.TakesBlocks() {
		one = from(one, off)
	}
	return [][]byte{one}, nil
}

// from returns a period of a buffer from an offset on, given the one from its beginning.
func from(period []byte, off int64) []byte {
	at := int(off % int64(len(period)))
	return append(period[at:len(period):len(period)], period[:at]...)
}

// Take makes a buffer of some bytes.
type Take func(bytes int64) ([]byte, error)

// Ordinary makes a slice of Go's.
func Ordinary(n int64) ([]byte, error) { return Buffer(n), nil }

// Buffers makes a rank's send and receive buffers, large enough for every root. send
// holds the rank's input; it is nil if the collective has one buffer.
func Buffers(r tasks.Request, rank, ranks int, t Take) (send, recv []byte, err error) {
	r.Root = levels.Rank(rank) // every rank's turn may come
	in, out := r.Buffers(r.Root, ranks)
	if recv, err = t(out); err != nil {
		return nil, nil, err
	}
	if r.Reduces() || r.Blocks() {
		if send, err = t(in); err != nil {
			return nil, nil, err
		}
		Tile(send, input(r, rank, ranks))
	}
	return send, recv, nil
}

// combineInputs returns the first n ranks' input, combined in the order of ranks.
func combineInputs(r tasks.Request, n, ranks int) ([]byte, error) {
	combine, err := kernel.For(r.Op, r.Type)
	if err != nil {
		return nil, err
	}
	all := Buffer(int64(period * r.Type.Size())) // aligned, as kernels need it
	next := Buffer(int64(len(all)))
	scale := kernel.Scale(r.Op, r.Type, ranks)
	for rank := range n {
		copy(next, input(r, rank, ranks))
		if scale != nil {
			scale(next, next)
		}
		if rank == 0 {
			copy(all, next)
			continue
		}
		combine(all, all, next)
	}
	if finish := kernel.Finish(r.Op, r.Type, n, ranks); finish != nil {
		finish(all)
	}
	return all, nil
}

// Tile fills a buffer with repetitions of a pattern.
func Tile(buf, pattern []byte) {
	for done := 0; done < len(buf); {
		done += copy(buf[done:], pattern)
	}
}

// Rewrite writes a buffer's own contents to it: its cache lines then belong to the processor of
// the caller.
func Rewrite(buf []byte) {
	var spare [4096]byte
	for len(buf) > 0 {
		n := copy(spare[:], buf)
		copy(buf, spare[:n])
		buf = buf[n:]
	}
}

// wrongElements counts the elements of a buffer different from the pattern's.
func wrongElements(buf, pattern []byte, t tasks.Datatype) (wrong int64) {
	size := t.Size()
	for len(buf) > 0 {
		n := min(len(buf), len(pattern))
		if !bytes.Equal(buf[:n], pattern[:n]) {
			for i := 0; i < n; i += size {
				if !equal(buf[i:i+size], pattern[i:i+size], t) {
					wrong++
				}
			}
		}
		buf = buf[n:]
	}
	return wrong
}

// WrongBlocks counts the wrong elements of a rank's buffer after a request.
func WrongBlocks(r tasks.Request, me int, buf []byte, blocks [][]byte) (wrong int64) {
	for i, pattern := range blocks {
		off, n := int64(0), int64(len(buf))
		switch {
		case r.Exchanges():
			_, off, n = r.Between(levels.Rank(i), levels.Rank(me))
		case r.GivesBlocks():
			off, n = r.Block(levels.Rank(i))
		}
		wrong += wrongElements(buf[off:][:n], pattern, r.Type)
	}
	return wrong
}

// equal reports whether two elements are the same. A Loc's bytes between value and
// index don't count.
func equal(a, b []byte, t tasks.Datatype) bool {
	if value, ok := t.Loc(); ok {
		n := value.Size()
		return bytes.Equal(a[:n], b[:n]) && bytes.Equal(a[8:], b[8:])
	}
	return bytes.Equal(a, b)
}

// Buffer returns n bytes, aligned for elements of any type.
func Buffer(n int64) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// Poison fills a buffer before it gets its result.
var Poison = bytes.Repeat([]byte{0xA5}, 4<<10)
