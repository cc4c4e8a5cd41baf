package join

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// exchange is one allgather: every rank floods its part, every rank collects all.
// Over a tree each part moves over each edge once, and less is impossible.
type exchange struct {
	parts   [][]byte // by rank; nil: not here yet
	missing int
	done    chan struct{}
	err     error // set before done is closed
}

// end completes x or, with an error, gives it up.
func (x *exchange) end(err error) {
	select {
	case <-x.done:
	default:
		x.err = err
		close(x.done)
	}
}

// Exchange gives every rank the blob of every rank, by rank. All ranks call it the
// same number of times; the nth calls belong together. Blobs have at most
// [MaxPayload] bytes. Concurrent calls on one rank are served one after the other.
//
// It fails with a [PeerError] when a rank is lost, has left, or did not come before the deadline of ctx, and with the
// cause of ctx when ctx ends first for another reason. The others get this rank's blob all the same, even if ctx was over
// before the call. After a failure the ranks no longer agree about the numbers of their calls, so all later calls on this
// rank fail with the same error.
func (j *Job) Exchange(ctx context.Context, blob []byte) ([][]byte, error) {
	if len(blob) > MaxPayload {
		return nil, fmt.Errorf("exchange: %d bytes; allowed are %d", len(blob), MaxPayload)
	}
	select {
	case j.exchanging <- struct{}{}: // whatever ctx says: others wait for this rank's part
	default:
		select {
		case j.exchanging <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("exchange: %w", context.Cause(ctx))
		}
	}
	defer func() { <-j.exchanging }()
	x, seq, err := j.begin(slices.Clone(blob))
	if err != nil {
		return nil, fmt.Errorf("exchange: %w", err)
	}
	f := frame{kind: frameBlob, from: j.Rank, to: everyone, seq: seq, payload: blob}
	j.flood(nil, &f)
	select {
	case <-x.done:
	case <-ctx.Done():
		j.mu.Lock()
		x.end(x.overdue(ctx))
		j.mu.Unlock()
	}
	parts, err := j.finish(x, seq)
	if err != nil {
		j.LetOut() // the news of a loss
	}
	return parts, err
}

// overdue is why x is given up when ctx ends. A deadline is the fault of the ranks
// without a part here.
func (x *exchange) overdue(ctx context.Context) error {
	cause := context.Cause(ctx)
	var missing []levels.Rank
	for r, part := range x.parts {
		if part == nil {
			missing = append(missing, levels.Rank(r))
		}
	}
	if len(missing) == 0 || !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return &PeerError{missing[0], fmt.Errorf("%s did not take part: %w", ranksText(missing), cause)}
}

// begin takes the next number and adds this rank's part.
func (j *Job) begin(blob []byte) (*exchange, uint32, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.exchangeErr; err != nil {
		return nil, 0, err
	}
	if j.closing {
		return nil, 0, ErrClosed
	}
	seq := j.nextExchange
	j.nextExchange++
	x := j.exchangeAt(seq)
	j.addPart(x, j.Rank, blob)
	j.settle(x)
	return x, seq, nil
}

func (j *Job) finish(x *exchange, seq uint32) ([][]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.exchanges, seq)
	if x.err != nil {
		j.exchangeErr = x.err
		return nil, fmt.Errorf("exchange %d: %w", seq, x.err)
	}
	return x.parts, nil
}

// exchangeAt finds or makes exchange seq. The caller holds j.mu.
func (j *Job) exchangeAt(seq uint32) *exchange {
	x := j.exchanges[seq]
	if x == nil {
		x = &exchange{parts: make([][]byte, j.Size), missing: j.Size, done: make(chan struct{})}
		j.exchanges[seq] = x
	}
	return x
}

// addPart puts in one rank's blob. The caller holds j.mu.
func (j *Job) addPart(x *exchange, r levels.Rank, blob []byte) {
	if x.parts[r] != nil {
		return
	}
	if blob == nil {
		blob = []byte{}
	}
	x.parts[r] = blob
	x.missing--
	if x.missing == 0 {
		x.end(nil)
	}
}

// settle gives x up if a rank is lost, or has left without its part. The rank lost
// first is the reason: others leave because of it. The caller holds j.mu.
func (j *Job) settle(x *exchange) {
	if len(j.losses) > 0 {
		x.end(&PeerError{j.losses[0], j.absent[j.losses[0]]})
		return
	}
	for r, err := range j.absent {
		if err != nil && x.parts[r] == nil {
			x.end(&PeerError{levels.Rank(r), err})
		}
	}
}

// receivePart takes a blob from the tree. No rank can be further than one exchange
// ahead, because it needs this rank's part of each.
func (j *Job) receivePart(f *frame) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.exchangeErr != nil {
		return nil
	}
	if f.seq > j.nextExchange {
		return fmt.Errorf("rank %d is at exchange %d, this rank at %d", f.from, f.seq, j.nextExchange)
	}
	if f.seq < j.nextExchange && j.exchanges[f.seq] == nil {
		return nil // given up here
	}
	j.addPart(j.exchangeAt(f.seq), f.from, f.payload)
	return nil
}
