package doctor

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
)

// Tags of messages.
const (
	orderTag  int32 = iota // from rank 0: order
	resultTag              // to rank 0: a visit
	pingTag                // between a pair: what to do, and the answer
	bulkTag                // and the bytes
)

// What an order or a ping asks for.
const (
	theEnd     uint64 = iota // of all visits, or of this one
	visitRank                // order: visit a rank
	hostRank                 // order: be visited by a rank
	tellTime                 // ping: answer with the time
	takeBytes                // ping: take so many bytes, then answer
	giveBytes                // ping: send so many bytes
	numberBits = 32          // of an order or a ping: a rank, or bytes
)

const (
	pingTime    = 2 * time.Millisecond // that a visit pings
	fewestPings = 5
	mostPings   = 100
	bulkTime    = 3 * time.Millisecond // a transfer that takes longer is the last one
	firstBulk   = 64 << 10             // bytes
	mostBulk    = 4 << 20              // bytes
	visitTime   = 5 * time.Second      // for a wave
)

// visit is what a pair measured. Rates are bytes per second.
type visit struct {
	A       int           `json:"a"`
	B       int           `json:"b"`
	First   time.Duration `json:"first_ns"`   // round trip of the first message, with the connection
	Latency time.Duration `json:"latency_ns"` // one way, of the best round trip
	Out     float64       `json:"bytes_per_second_ab"`
	Back    float64       `json:"bytes_per_second_ba"`
	// Ahead is how much later the clock of B is, as far as half a round trip tells.
	Ahead time.Duration `json:"clock_ahead_ns"`
}

// visitBytes is the length of an encoded visit.
const visitBytes = 7 * 8

// visitor is a rank in the measurement.
type visitor struct {
	comm *executor.Comm
	bulk []byte
}

// send and recv move a message.
func (v *visitor) send(ctx context.Context, to levels.Rank, tag int32, b []byte) error {
	t, err := v.comm.Send(ctx, to, tag, b)
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

func (v *visitor) recv(ctx context.Context, from levels.Rank, tag int32, b []byte) error {
	t, err := v.comm.Recv(ctx, from, tag, b)
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

// obey does what rank 0 orders, until the end.
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
		return v.host(ctx, partner)
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
		b := make([]byte, visitBytes)
		if err := v.recv(ctx, levels.Rank(p.a), resultTag, b); err != nil {
			return visits, fmt.Errorf("r%d>r%d: %w", p.a, p.b, err)
		}
		visits = append(visits, decodeVisit(b))
	}
	return visits, nil
}

// visit measures with a rank that hosts this one.
func (v *visitor) visit(ctx context.Context, to levels.Rank) (r visit, err error) {
	r = visit{A: int(v.comm.Rank()), B: int(to)}
	doing := "the first message"
	defer func() {
		if err != nil {
			err = fmt.Errorf("r%d>r%d: %s: %w", r.A, r.B, doing, err)
		}
	}()
	best := time.Duration(0)
	for began, i := time.Now(), 0; i < fewestPings || i < mostPings && time.Since(began) < pingTime; i++ {
		from := time.Now()
		if err := v.say(ctx, to, pingTag, tellTime<<numberBits); err != nil {
			return r, err
		}
		theirs, err := v.hear(ctx, to, pingTag)
		if err != nil {
			return r, err
		}
		trip := time.Since(from)
		switch {
		case i == 0:
			r.First, doing = trip, "small messages"
		case best == 0 || trip < best:
			best, r.Ahead = trip, time.Duration(int64(theirs)-from.Add(trip/2).UnixNano())
		}
	}
	r.Latency = best / 2
	if r.Ahead.Abs() <= best/2 {
		r.Ahead = 0
	}
	for n := firstBulk; n <= mostBulk; n *= 4 {
		doing = fmt.Sprintf("%d bytes there", n)
		took, err := v.timed(func() error {
			if err := v.say(ctx, to, pingTag, takeBytes<<numberBits|uint64(n)); err != nil {
				return err
			}
			if err := v.send(ctx, to, bulkTag, v.bulk[:n]); err != nil {
				return err
			}
			_, err := v.hear(ctx, to, pingTag)
			return err
		})
		if err != nil {
			return r, err
		}
		r.Out = max(r.Out, rate(n, took, r.Latency))
		if took > bulkTime {
			break
		}
	}
	for n := firstBulk; n <= mostBulk; n *= 4 {
		doing = fmt.Sprintf("%d bytes back", n)
		took, err := v.timed(func() error {
			if err := v.say(ctx, to, pingTag, giveBytes<<numberBits|uint64(n)); err != nil {
				return err
			}
			return v.recv(ctx, to, bulkTag, v.bulk[:n])
		})
		if err != nil {
			return r, err
		}
		r.Back = max(r.Back, rate(n, took, r.Latency))
		if took > bulkTime {
			break
		}
	}
	doing = "the end"
	return r, v.say(ctx, to, pingTag, theEnd)
}

func (v *visitor) timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

// rate returns bytes per second. A transfer takes a latency, but not most of its time.
func rate(n int, took, latency time.Duration) float64 {
	return float64(n) / max(took-min(latency, took/2), 1).Seconds()
}

// host answers a visitor.
func (v *visitor) host(ctx context.Context, from levels.Rank) error {
	for {
		ping, err := v.hear(ctx, from, pingTag)
		if err != nil {
			return err
		}
		n := min(int(uint32(ping)), mostBulk)
		switch ping >> numberBits {
		case tellTime:
			err = v.say(ctx, from, pingTag, uint64(time.Now().UnixNano()))
		case takeBytes:
			if err = v.recv(ctx, from, bulkTag, v.bulk[:n]); err == nil {
				err = v.say(ctx, from, pingTag, 0)
			}
		case giveBytes:
			err = v.send(ctx, from, bulkTag, v.bulk[:n])
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// encode writes a visit in visitBytes.
func (r *visit) encode() []byte {
	var b []byte
	for _, n := range []int64{int64(r.A), int64(r.B), int64(r.First), int64(r.Latency), int64(r.Out), int64(r.Back), int64(r.Ahead)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// decodeVisit reads what encode wrote.
func decodeVisit(b []byte) visit {
	at := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
	return visit{
		A: int(at(0)), B: int(at(1)), First: time.Duration(at(2)), Latency: time.Duration(at(3)),
		Out: float64(at(4)), Back: float64(at(5)), Ahead: time.Duration(at(6)),
	}
}
