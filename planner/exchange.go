package planner

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// An Exchange is a gather, scatter or alltoall of blocks whose sizes only the two ranks know
// that a block is between: MPI_Gatherv, where the root alone knows all of them, is one. No
// rank tells sizes before. Short blocks go in envelopes of equal size, by a collective that
// is compiled once for all sizes; each long one goes at the same time from rank to rank.
type Exchange struct {
	c        *Comm
	coll     tasks.Collective
	col      *Collective // of envelopes
	pending  *Pending
	tag      int32
	send     []byte // envelopes that go
	recv     []byte // and that come
	envelope int    // bytes
	get      [][]byte
	sends    []*executor.Transfer
	receives []*executor.Transfer
	wrong    error // sizes that two ranks know otherwise
}

// Each exchange has a tag of its own among so many, since they may end in any order. The
// tags of callers end before them.
const (
	exchangeTags = 1 << 16
	lastTag      = math.MaxInt32 - exchangeTags
)

const exchangeCall purpose = "blocks of sizes that two ranks know"

// sizeBytes of an envelope say how long the block is.
const sizeBytes = 8

// Bounds of an envelope, with its size: of all ranks together they are one eager message.
const (
	leastEnvelope = 4 * sizeBytes
	mostEnvelope  = 512
	allEnvelopes  = 4 << 10
)

// StartExchange begins an exchange: give[i] is what this rank gives rank i, get[i] where that
// of rank i goes. coll is [tasks.Gather] or [tasks.Scatter], where root is all that gets or
// gives, or [tasks.Alltoall], without a root. A rank that gives or gets nothing may leave out that
// list. All ranks must make it in the same order as other collectives. Blocks must not be
// touched before it has ended.
//
// A block that one rank gives longer or shorter than the other expects is an error where it
// should go. In [Comm.ExchangeNow] all else then goes where it should; of a started exchange
// the communicator breaks, if a long block was expected.
func (c *Comm) StartExchange(ctx context.Context, coll tasks.Collective, root int, give, get [][]byte) (*Exchange, error) {
	x, err := c.exchange(ctx, coll, root, give, get)
	if err != nil {
		return nil, err
	}
	for _, t := range x.sends {
		t.Watch(ctx)
	}
	for from, block := range x.get { // before the envelopes come: nobody may look for long
		if x.comesLong(from, len(block)) {
			x.receive(ctx, from, block)
		}
	}
	for _, t := range x.receives {
		t.Watch(ctx)
	}
	if x.pending, err = x.col.Start(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// ExchangeNow is [Comm.StartExchange] and Wait in one call.
func (c *Comm) ExchangeNow(ctx context.Context, coll tasks.Collective, root int, give, get [][]byte) error {
	x, err := c.exchange(ctx, coll, root, give, get)
	if err != nil {
		return err
	}
	err = x.col.Run(ctx)
	if err == nil {
		x.open(ctx, true)
	}
	return x.end(ctx, err)
}

// exchange fills the envelopes and begins to send what doesn't fit.
func (c *Comm) exchange(ctx context.Context, coll tasks.Collective, root int, give, get [][]byte) (*Exchange, error) {
	if err := c.usable(ctx); err != nil {
		return nil, fmt.Errorf("exchange: %w", err)
	}
	r, err := c.rank("root", root)
	if err != nil {
		return nil, fmt.Errorf("exchange: %w", err)
	}
	if give, get, err = c.ownLists(coll, root, give, get); err != nil {
		return nil, fmt.Errorf("exchange as a %v: %w", coll, err)
	}
	x, err := c.borrowExchange(coll, r)
	if err != nil {
		return nil, err
	}
	x.get = get
	c.mu.Lock()
	c.exchanged++
	x.tag = int32(lastTag + 1 + c.exchanged%exchangeTags)
	c.mu.Unlock()
	me := c.Rank()
	if give != nil && get != nil {
		x.check(me, len(give[me]))
		copy(get[me], give[me])
	}
	for to, block := range give {
		if to == me && get != nil || coll == tasks.Gather && to != root {
			continue
		}
		e := x.outgoing(to)
		binary.LittleEndian.PutUint64(e, uint64(len(block)))
		if len(block) <= x.envelope-sizeBytes {
			copy(e[sizeBytes:], block)
			continue
		}
		t, err := c.comm.Send(ctx, levels.Rank(to), x.tag, block)
		if err != nil {
			return nil, fmt.Errorf("exchange: %w", err)
		}
		x.sends = append(x.sends, t)
	}
	return x, nil
}

// ownLists returns the lists that this rank has a use for, with a block for each rank.
func (c *Comm) ownLists(coll tasks.Collective, root int, give, get [][]byte) (gives, gets [][]byte, err error) {
	switch coll {
	case tasks.Gather, tasks.Scatter, tasks.Alltoall:
	default:
		return nil, nil, fmt.Errorf("allowed are %v, %v and %v", tasks.Gather, tasks.Scatter, tasks.Alltoall)
	}
	if coll == tasks.Gather && c.Rank() != root {
		get = nil
	} else if len(get) != c.Size() {
		return nil, nil, fmt.Errorf("rank %d has %d blocks to get; it must have one for each of %d ranks", c.Rank(), len(get), c.Size())
	}
	if coll == tasks.Scatter && c.Rank() != root {
		give = nil
	} else if len(give) != c.Size() {
		return nil, nil, fmt.Errorf("rank %d has %d blocks to give; it must have one for each of %d ranks", c.Rank(), len(give), c.Size())
	}
	return give, get, nil
}

// borrowExchange takes one of an earlier call, or makes one.
func (c *Comm) borrowExchange(coll tasks.Collective, root levels.Rank) (*Exchange, error) {
	envelope := min(max(allEnvelopes/c.Size(), leastEnvelope), mostEnvelope)
	r, err := c.Canonical(tasks.Request{Coll: coll, Count: int64(envelope), Type: tasks.Uint8, Root: root})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	left := c.spare.take(r)
	c.mu.Unlock()
	if left != nil {
		return left.(*Exchange), nil
	}
	x := &Exchange{c: c, coll: coll, envelope: envelope}
	n, m := r.Buffers(c.comm.Rank(), c.Size())
	x.send, x.recv = make([]byte, n), make([]byte, m)
	d, err := c.choose(r, c.topology)
	if err != nil {
		return nil, err
	}
	x.col, err = c.decided(&d, r, exchangeCall, x.send, x.recv)
	return x, err
}

// returnExchange keeps one that has ended well for the next call.
func (c *Comm) returnExchange(x *Exchange) {
	x.get, x.pending, x.wrong = nil, nil, nil
	clear(x.sends)
	clear(x.receives)
	x.sends, x.receives = x.sends[:0], x.receives[:0]
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache != nil { // not closed
		c.spare.put(x.col.request, x)
	}
}

// outgoing is the envelope to a rank.
func (x *Exchange) outgoing(to int) []byte {
	if x.coll == tasks.Gather {
		return x.send
	}
	return x.send[to*x.envelope:][:x.envelope]
}

// incoming is the envelope from a rank, nil if none comes.
func (x *Exchange) incoming(from int) []byte {
	if x.coll != tasks.Scatter {
		return x.recv[from*x.envelope:][:x.envelope]
	}
	if levels.Rank(from) != x.col.request.Root {
		return nil
	}
	return x.recv
}

// check notes that a rank gives another size than this one expects.
func (x *Exchange) check(from, n int) {
	if want := len(x.get[from]); n != want && x.wrong == nil {
		x.wrong = fmt.Errorf("%v: rank %d gives rank %d %d bytes, which expects %d", x.coll, from, x.c.Rank(), n, want)
	}
}

// comesLong reports whether a block of a rank comes by itself.
func (x *Exchange) comesLong(from, n int) bool {
	return from != x.c.Rank() && x.incoming(from) != nil && n > x.envelope-sizeBytes
}

// receive begins to receive a long block.
func (x *Exchange) receive(ctx context.Context, from int, block []byte) {
	t, err := x.c.comm.Recv(ctx, levels.Rank(from), x.tag, block)
	if err != nil {
		x.wrong = err
		return
	}
	x.receives = append(x.receives, t)
}

// open takes the short blocks out of their envelopes and, if asked to, begins to receive the
// long ones: one of another size than expected elsewhere, so that its rank doesn't wait.
func (x *Exchange) open(ctx context.Context, receive bool) {
	for from, block := range x.get {
		if from == x.c.Rank() || x.incoming(from) == nil {
			continue
		}
		e := x.incoming(from)
		n := int(binary.LittleEndian.Uint64(e))
		x.check(from, n)
		switch short := n <= x.envelope-sizeBytes; {
		case short && n == len(block):
			copy(block, e[sizeBytes:])
		case short || !receive:
		case n == len(block):
			x.receive(ctx, from, block)
		default:
			x.receive(ctx, from, make([]byte, n))
		}
	}
}

// end waits for the long blocks.
func (x *Exchange) end(ctx context.Context, err error) error {
	for _, list := range [][]*executor.Transfer{x.sends, x.receives} {
		for _, t := range list {
			if failed := t.Wait(ctx); err == nil && failed != nil {
				err = failed
			}
		}
	}
	if x.wrong != nil {
		err = x.wrong
	}
	if err != nil {
		return fmt.Errorf("exchange as a %v: %w", x.coll, err)
	}
	x.c.returnExchange(x)
	return nil
}

// Done reports whether it has ended on this rank, and Wait would return at once.
func (x *Exchange) Done() bool {
	if !x.pending.Done() {
		return false
	}
	for _, list := range [][]*executor.Transfer{x.sends, x.receives} {
		for _, t := range list {
			if !t.Done() {
				return false
			}
		}
	}
	return true
}

// Wait blocks until it has ended on this rank. It must be called once for each start. The
// exchange can't be used afterwards.
func (x *Exchange) Wait() error {
	ctx := context.Background()
	err := x.pending.Wait()
	if err == nil {
		x.open(ctx, false)
	}
	if x.wrong != nil { // a block may never come
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		cancel(x.wrong)
	}
	return x.end(ctx, err)
}
