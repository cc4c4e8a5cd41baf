package planner

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// An exchange is a gather, scatter or alltoall of blocks. Only a block's sender and receiver know
// its size: MPI_Gatherv is one, and there the root alone knows all of them. No
// rank tells sizes before. Short blocks go in envelopes of equal size, by a collective
// compiled once for all sizes. Each long one goes at the same time from rank to rank.
type exchange struct {
	c        *Comm
	coll     tasks.Collective
	col      *Collective // of envelopes
	pending  *Pending
	tag      int32
	send     []byte // envelopes to other ranks
	recv     []byte // and from them
	envelope int    // bytes
	get      [][]byte
	long     []*executor.Transfer // of long blocks, sent and received
	inStore  place
	wrong    error // the first block of another size than expected
}

// Each exchange has a tag of its own among so many, since they may end in any order. The
// tags of callers end before them.
const (
	exchangeTags = 1 << 16
	lastTag      = math.MaxInt32 - exchangeTags
)

const exchangeCall purpose = "blocks of sizes that two ranks know"

// sizeBytes of an envelope hold the block's length.
const sizeBytes = 8

// Bounds of an envelope, with its size: of all ranks together they are one eager message.
const (
	leastEnvelope = 4 * sizeBytes
	mostEnvelope  = 512
	allEnvelopes  = 4 << 10
)

// startExchange is raw.StartExchange.
func (c *Comm) startExchange(ctx context.Context, coll tasks.Collective, root int, give, get [][]byte) (*exchange, error) {
	x, err := c.exchange(ctx, coll, root, give, get)
	if err != nil {
		return nil, err
	}
	for from, block := range x.get { // before the envelopes come: nobody may look for long
		if x.isLong(from, len(block)) {
			x.receive(ctx, from, block)
		}
	}
	for _, t := range x.long {
		t.Watch(ctx)
	}
	if x.pending, err = x.col.Start(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// exchangeBlocks is raw.Exchange.
func (c *Comm) exchangeBlocks(ctx context.Context, coll tasks.Collective, root int, give, get [][]byte) error {
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

// exchange fills the envelopes and begins to send the long blocks.
func (c *Comm) exchange(ctx context.Context, coll tasks.Collective, root int, give, get [][]byte) (*exchange, error) {
	if err := c.checkCall(ctx); err != nil {
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
	x.tag = c.store.nextTag()
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
		t, err := c.comm.Send(ctx, levels.Rank(to), x.tag, tasks.Uint8, block)
		if err != nil {
			return nil, fmt.Errorf("exchange: %w", err)
		}
		x.long = append(x.long, t)
	}
	return x, nil
}

// ownLists returns the lists in use on this rank, with a block for each rank.
func (b *base) ownLists(coll tasks.Collective, root int, give, get [][]byte) (gives, gets [][]byte, err error) {
	me, ranks := int(b.comm.Rank()), b.topology.Size()
	switch coll {
	case tasks.Gather, tasks.Scatter, tasks.Alltoall:
	default:
		return nil, nil, fmt.Errorf("allowed are %v, %v and %v", tasks.Gather, tasks.Scatter, tasks.Alltoall)
	}
	if coll == tasks.Gather && me != root {
		get = nil
	} else if len(get) != ranks {
		return nil, nil, fmt.Errorf("rank %d has %d blocks to get; it must have one for each of %d ranks", me, len(get), ranks)
	}
	if coll == tasks.Scatter && me != root {
		give = nil
	} else if len(give) != ranks {
		return nil, nil, fmt.Errorf("rank %d has %d blocks to give; it must have one for each of %d ranks", me, len(give), ranks)
	}
	return give, get, nil
}

// borrowExchange takes an exchange of an earlier call, or makes one.
func (c *Comm) borrowExchange(coll tasks.Collective, root levels.Rank) (*exchange, error) {
	envelope := min(max(allEnvelopes/c.Size(), leastEnvelope), mostEnvelope)
	r, err := c.checkRequest(tasks.Request{Coll: coll, Count: int64(envelope), Type: tasks.Uint8, Root: root})
	if err != nil {
		return nil, err
	}
	x, err := c.store.borrow(use{exchangeCall, r}, func() (program, error) {
		x := &exchange{c: c, coll: coll, envelope: envelope}
		n, m := r.Buffers(c.comm.Rank(), c.Size())
		x.send, x.recv = make([]byte, n), make([]byte, m)
		d, err := c.choose(r, c.topology, c.registry)
		if err != nil {
			return nil, err
		}
		x.col, err = c.prepareBy(&d, r, exchangeCall, x.send, x.recv)
		return x, err
	})
	if err != nil {
		return nil, err
	}
	return x.(*exchange), nil
}

func (x *exchange) place() *place { return &x.inStore }

func (x *exchange) footprint() int64 {
	return x.col.run.Footprint() + int64(len(x.send)+len(x.recv))
}

// clear lets the caller's blocks go, after a good end.
func (x *exchange) clear() {
	x.get, x.pending, x.wrong = nil, nil, nil
	clear(x.long)
	x.long = x.long[:0]
}

// outgoing is the envelope to a rank.
func (x *exchange) outgoing(to int) []byte {
	if x.coll == tasks.Gather {
		return x.send
	}
	return x.send[to*x.envelope:][:x.envelope]
}

// incoming is the envelope from a rank, nil if none comes.
func (x *exchange) incoming(from int) []byte {
	if x.coll != tasks.Scatter {
		return x.recv[from*x.envelope:][:x.envelope]
	}
	if levels.Rank(from) != x.col.request.Root {
		return nil
	}
	return x.recv
}

// check notes a block of another size than this rank expects.
func (x *exchange) check(from, n int) {
	if want := len(x.get[from]); n != want && x.wrong == nil {
		x.wrong = fmt.Errorf("%v: rank %d gives rank %d %d bytes, which expects %d", x.coll, from, x.c.Rank(), n, want)
	}
}

// isLong reports whether a block of a rank comes by itself.
func (x *exchange) isLong(from, n int) bool {
	return from != x.c.Rank() && x.incoming(from) != nil && n > x.envelope-sizeBytes
}

// receive begins to receive a long block.
func (x *exchange) receive(ctx context.Context, from int, block []byte) {
	t, err := x.c.comm.Recv(ctx, levels.Rank(from), x.tag, tasks.Uint8, block)
	if err != nil {
		x.wrong = err
		return
	}
	x.long = append(x.long, t)
}

// open takes the short blocks out of their envelopes. With receive it begins to receive the
// long ones. A long block of unexpected size goes to other memory: its sender must not wait.
func (x *exchange) open(ctx context.Context, receive bool) {
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
func (x *exchange) end(ctx context.Context, err error) error {
	for _, t := range x.long {
		if failed := t.Wait(ctx); err == nil {
			err = failed
		}
	}
	if x.wrong != nil {
		err = x.wrong
	}
	if err != nil {
		return fmt.Errorf("exchange as a %v: %w", x.coll, err)
	}
	x.clear()
	x.c.store.giveBack(x)
	return nil
}

// Done reports whether it has ended on this rank, and Wait would return at once.
func (x *exchange) Done() bool {
	if !x.pending.Done() {
		return false
	}
	return !slices.ContainsFunc(x.long, func(t *executor.Transfer) bool { return !t.Done() })
}

// Wait blocks until it has ended on this rank. It must be called once for each start. The
// exchange can't be used afterwards. If ctx is cancelled first, the communicator breaks on all ranks.
func (x *exchange) Wait(ctx context.Context) error {
	err := x.pending.Wait(ctx)
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
