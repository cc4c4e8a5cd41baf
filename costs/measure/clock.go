package measure

import (
	"context"
	"encoding/binary"
	"runtime"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// pings is how often rank 0 asks each rank for its time; the quickest answer counts.
const pings = 8

// compareClocks finds how far each rank's wall clock is from rank 0's, to half of a round trip.
// Ranks of one host share a clock, and an offset below half of a round trip is none.
func (b *Bench) compareClocks(ctx context.Context) error {
	longest := time.Duration(0)
	for r := levels.Rank(1); int(r) < b.comm.Size(); r++ {
		switch b.Rank() {
		case 0:
			offset, trip, err := b.askClock(ctx, r)
			if err != nil {
				return err
			}
			longest = max(longest, trip)
			if err := b.passNumber(ctx, r, int64(offset)); err != nil {
				return err
			}
		case r:
			if err := b.answer(ctx); err != nil {
				return err
			}
		}
	}
	// The news goes down a tree.
	trip, err := b.tellNumber(ctx, int64(longest))
	b.notice = 20*time.Microsecond + 2*time.Duration(trip)
	return err
}

// askClock compares with one rank.
func (b *Bench) askClock(ctx context.Context, r levels.Rank) (offset, trip time.Duration, err error) {
	for i := range pings {
		begin := time.Now()
		if err := b.passNumber(ctx, r, 0); err != nil {
			return 0, 0, err
		}
		theirs, err := b.get(ctx, r)
		if err != nil {
			return 0, 0, err
		}
		if d := time.Since(begin); i == 0 || d < trip {
			trip, offset = d, time.Duration(theirs-begin.Add(d/2).UnixNano())
		}
	}
	if offset.Abs() <= trip/2 {
		offset = 0
	}
	return offset, trip, nil
}

func (b *Bench) answer(ctx context.Context) error {
	for range pings {
		if _, err := b.get(ctx, 0); err != nil {
			return err
		}
		if err := b.passNumber(ctx, 0, time.Now().UnixNano()); err != nil {
			return err
		}
	}
	v, err := b.get(ctx, 0)
	b.offset = time.Duration(v)
	return err
}

// passNumber sends a number to one rank.
func (b *Bench) passNumber(ctx context.Context, to levels.Rank, v int64) error {
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(v))
	t, err := b.comm.Send(ctx, to, 0, tasks.Int64, buf[:])
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

func (b *Bench) get(ctx context.Context, from levels.Rank) (int64, error) {
	var buf [8]byte
	t, err := b.comm.Recv(ctx, from, 0, tasks.Int64, buf[:])
	if err != nil {
		return 0, err
	}
	err = t.Wait(ctx)
	return int64(binary.LittleEndian.Uint64(buf[:])), err
}

// lastMoments is how long before a start a rank keeps its core.
const lastMoments = 50 * time.Microsecond

// awaitTime returns at an agreed time of rank 0's clock, or at once if it has passed.
// Timers are good to a millisecond only.
func (b *Bench) awaitTime(at int64) {
	for {
		left := time.Duration(at + int64(b.offset) - time.Now().UnixNano())
		if left <= 0 {
			return
		}
		if left > lastMoments {
			yield()
		}
		runtime.Gosched()
	}
}
