package doctor

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/costs/pairs"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Tags of messages.
const (
	orderTag  int32 = iota // from rank 0: order
	resultTag              // to rank 0: a visit
	pairTag                // between a pair
)

// Kinds of orders.
const (
	theEnd     uint64 = iota // of all visits
	visitRank                // visit a rank
	hostRank                 // be visited by a rank
	numberBits = 32          // of an order: a rank
)

// visitTime bounds the visits of a wave.
const visitTime = 5 * time.Second

// visit is rank A's measurement of its line to rank B.
type visit struct {
	A int `json:"a"`
	B int `json:"b"`
	pairs.Visit
}

// encodedVisit has the numbers of a visit in the order of its fields.
type encodedVisit [7]int64

// visitor is a rank in the measurement.
type visitor struct {
	comm *executor.Comm
}

// line is a visitor's line to another rank.
type line struct {
	*visitor
	peer levels.Rank
}

func (l line) Send(ctx context.Context, b []byte) error { return l.send(ctx, l.peer, pairTag, b) }
func (l line) Recv(ctx context.Context, b []byte) error { return l.recv(ctx, l.peer, pairTag, b) }

// send and recv move a message.
func (v *visitor) send(ctx context.Context, to levels.Rank, tag int32, b []byte) error {
	t, err := v.comm.Send(ctx, to, tag, tasks.Uint8, b)
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

func (v *visitor) recv(ctx context.Context, from levels.Rank, tag int32, b []byte) error {
	t, err := v.comm.Recv(ctx, from, tag, tasks.Uint8, b)
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

// say and hear move a number.
func (v *visitor) say(ctx context.Context, to levels.Rank, tag int32, n uint64) error {
	return v.send(ctx, to, tag, binary.LittleEndian.AppendUint64(nil, n))
}

func (v *visitor) hear(ctx context.Context, from levels.Rank, tag int32) (uint64, error) {
	var b [8]byte
	err := v.recv(ctx, from, tag, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

// obey follows rank 0's orders, until the end.
func (v *visitor) obey(ctx context.Context) error {
	for {
		order, err := v.hear(ctx, 0, orderTag)
		if err != nil || order>>numberBits == theEnd {
			return err
		}
		if err := v.follow(ctx, order); err != nil {
			return err
		}
	}
}

// follow does its part of one visit.
func (v *visitor) follow(ctx context.Context, order uint64) error {
	ctx, stop := context.WithTimeout(ctx, visitTime)
	defer stop()
	partner := levels.Rank(uint32(order))
	if order>>numberBits == hostRank {
		return pairs.Follow(ctx, line{v, partner}, pairs.VisitLimit)
	}
	result, err := v.visit(ctx, partner)
	if err != nil {
		return err
	}
	return v.send(ctx, 0, resultTag, result.encode())
}

// conduct lets pairs visit each other, wave by wave, until limit. It is rank 0's.
func (v *visitor) conduct(ctx context.Context, all [][]pair, limit time.Duration) (visits []visit, err error) {
	end := time.Now().Add(limit)
	for _, wave := range all {
		if time.Now().After(end) {
			break
		}
		done, err := v.wave(ctx, wave)
		visits = append(visits, done...)
		if err != nil {
			return visits, err
		}
	}
	for r := 1; r < v.comm.Size(); r++ {
		if err := v.say(ctx, levels.Rank(r), orderTag, theEnd); err != nil {
			return visits, err
		}
	}
	return visits, nil
}

// wave lets the pairs of a wave measure, rank 0 among them.
func (v *visitor) wave(ctx context.Context, wave []pair) (visits []visit, err error) {
	ctx, stop := context.WithTimeout(ctx, visitTime+time.Second)
	defer stop()
	var mine *pair
	for _, p := range wave {
		if p.a == 0 {
			mine = &p
		} else if err := v.say(ctx, levels.Rank(p.a), orderTag, visitRank<<numberBits|uint64(p.b)); err != nil {
			return nil, err
		}
		if err := v.say(ctx, levels.Rank(p.b), orderTag, hostRank<<numberBits|uint64(p.a)); err != nil {
			return nil, err
		}
	}
	if mine != nil {
		short, cancel := context.WithTimeout(ctx, visitTime)
		result, err := v.visit(short, levels.Rank(mine.b))
		cancel()
		if err != nil {
			return nil, err
		}
		visits = append(visits, result)
	}
	for _, p := range wave {
		if p.a == 0 {
			continue
		}
		b := make([]byte, binary.Size(encodedVisit{}))
		if err := v.recv(ctx, levels.Rank(p.a), resultTag, b); err != nil {
			return visits, fmt.Errorf("r%d>r%d: %w", p.a, p.b, err)
		}
		visits = append(visits, decodeVisit(b))
	}
	return visits, nil
}

// visit measures with a rank hosting this one.
func (v *visitor) visit(ctx context.Context, to levels.Rank) (r visit, err error) {
	r = visit{A: int(v.comm.Rank()), B: int(to)}
	if r.Visit, err = pairs.NewLeader(line{v, to}).Visit(ctx); err != nil {
		err = fmt.Errorf("r%d>r%d: %w", r.A, r.B, err)
	}
	return r, err
}

// encode writes a visit for [decodeVisit].
func (r *visit) encode() []byte {
	n := encodedVisit{int64(r.A), int64(r.B), int64(r.First), int64(r.Latency), int64(r.Out), int64(r.Back), int64(r.Ahead)}
	b, _ := binary.Append(nil, binary.LittleEndian, n) // numbers of fixed size: can't fail
	return b
}

// decodeVisit reads an encoded visit.
func decodeVisit(b []byte) visit {
	var n encodedVisit
	_, _ = binary.Decode(b, binary.LittleEndian, &n) // b is as long as n
	return visit{A: int(n[0]), B: int(n[1]), Visit: pairs.Visit{
		First: time.Duration(n[2]), Latency: time.Duration(n[3]), Out: float64(n[4]), Back: float64(n[5]), Ahead: time.Duration(n[6]),
	}}
}
