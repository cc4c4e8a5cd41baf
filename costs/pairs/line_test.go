package pairs

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// wire is one direction of a line on a fake clock.
type wire struct {
	send, recv, latency time.Duration // of a message
	perByte             float64       // ns, one message after the other
	free                time.Time     // when the last byte so far has left
	on                  chan packet
}

// packet is a message on its way.
type packet struct {
	b   []byte
	due time.Time
}

func (w *wire) put(ctx context.Context, b []byte) {
	clocktest.Pause(ctx, w.send)
	if now := time.Now(); w.free.Before(now) {
		w.free = now
	}
	w.free = w.free.Add(time.Duration(float64(len(b)) * w.perByte))
	w.on <- packet{append([]byte(nil), b...), w.free.Add(w.latency)}
}

// end is a rank's end of two wires. Its clock is late by behind.
type end struct {
	out, in *wire
	behind  time.Duration
	cut     int // after so many messages sends fail; 0: never
}

var errCut = errors.New("the line is cut")

func (e *end) Send(ctx context.Context, b []byte) error {
	if e.cut--; e.cut == 0 {
		return errCut
	}
	e.out.put(ctx, b)
	return nil
}

func (e *end) Recv(ctx context.Context, b []byte) error {
	select {
	case p := <-e.in.on:
		clocktest.Pause(ctx, time.Until(p.due))
		clocktest.Pause(ctx, e.in.recv)
		if len(p.b) != len(b) {
			return errors.New("a message of another length")
		}
		copy(b, p.b)
		if len(b) == answerBytes {
			binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+uint64(e.behind))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newLine returns both ends of a line whose wires are alike.
func newLine(like wire) (leads, follows *end) {
	there, back := like, like
	there.on, back.on = make(chan packet, 64), make(chan packet, 64)
	return &end{out: &there, in: &back}, &end{out: &back, in: &there}
}

// lead calls f on a leader whose follower obeys, and returns the follower's error.
func lead(t *testing.T, like wire, most Limit, f func(ctx context.Context, l *Leader, e *end)) (followed error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		mine, others := newLine(like)
		done := make(chan error)
		go func() { done <- Follow(ctx, others, most) }()
		f(ctx, NewLeader(mine), mine)
		followed = <-done
	})
	return followed
}

// drawn returns the numbers of a link between nodes.
func drawn(rng *rand.Rand) wire {
	us := func(most int) time.Duration { return time.Duration(1+rng.IntN(most)) * time.Microsecond }
	return wire{send: us(4), recv: us(4), latency: us(40) + 10*time.Microsecond, perByte: 0.1 + 3*rng.Float64()}
}

func near(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

// What a probe finds of a line are the numbers that the line has.
func TestProbe(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 1))
	for range 20 {
		w := drawn(rng)
		var p Probe
		if err := lead(t, w, ProbeLimit, func(ctx context.Context, l *Leader, _ *end) {
			var err error
			if p, err = l.Probe(ctx); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Error(err)
		}
		l := p.Link(machine.Link{}, Place{})
		way := float64(w.latency + w.send + w.recv)
		if got := l.Latency + l.Send + l.Recv; !near(got, way, 0.03) {
			t.Errorf("%+v: one way takes %v ns, want %v", w, got, way)
		}
		if !near(l.Send, float64(w.send), 0.01) || !near(l.Recv, float64(max(w.send, w.recv)), 0.1) {
			t.Errorf("%+v: %v ns to send and %v to receive", w, l.Send, l.Recv)
		}
		if !near(l.Byte, w.perByte, 0.05) {
			t.Errorf("%+v: a byte takes %v ns", w, l.Byte)
		}
		if l.BurstBytes > 2<<10 {
			t.Errorf("%+v: %d bytes pass in a burst", w, l.BurstBytes)
		}
	}
}

// A slow link gets no long stream, and its bytes still count.
func TestProbeOfSlowLink(t *testing.T) {
	w := wire{latency: 50 * time.Microsecond, perByte: 80} // 100 Mbit/s
	took := time.Duration(0)
	if err := lead(t, w, ProbeLimit, func(ctx context.Context, l *Leader, _ *end) {
		begun := time.Now()
		p, err := l.Probe(ctx)
		took = time.Since(begun)
		if err != nil || p[Whole] != 0 || !near(p.Link(machine.Link{}, Place{}).Byte, 80, 0.05) {
			t.Errorf("%v, %v", p, err)
		}
	}); err != nil {
		t.Error(err)
	}
	if took > 2*probeTime {
		t.Errorf("it took %v", took)
	}
}

// A link is what it was, unless latency or rate are far from that.
func TestIsChanged(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 2))
	for range 20 {
		w := drawn(rng)
		was := machine.Link{Latency: float64(w.latency), Send: float64(w.send), Recv: float64(w.recv), Byte: w.perByte}
		slow, far := was, was
		slow.Byte = 4*w.perByte + 5
		far.Latency += 200_000
		for _, test := range []struct {
			name string
			link machine.Link
			want bool
		}{{"the same", was, false}, {"was slower", slow, true}, {"was farther", far, true}} {
			if err := lead(t, w, ProbeLimit, func(ctx context.Context, l *Leader, _ *end) {
				if got, err := l.IsChanged(ctx, test.link); got != test.want || err != nil {
					t.Errorf("%+v, %s: %v, %v", w, test.name, got, err)
				}
			}); err != nil {
				t.Error(err)
			}
		}
	}
}

// A visit tells latency, rates and how far apart the clocks are.
func TestVisit(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 3))
	for range 20 {
		w, ahead := drawn(rng), time.Duration(rng.Int64N(int64(time.Hour)))-time.Hour/2
		if err := lead(t, w, VisitLimit, func(ctx context.Context, l *Leader, e *end) {
			e.behind = ahead
			v, err := l.Visit(ctx)
			if err != nil {
				t.Error(err)
			}
			way, rate := w.latency+w.send+w.recv, 1e9/w.perByte
			if !near(float64(v.Latency), float64(way), 0.05) || !near(v.Out, rate, 0.1) || !near(v.Back, rate, 0.1) {
				t.Errorf("%+v: %+v", w, v)
			}
			if (v.Ahead - ahead).Abs() > v.Latency {
				t.Errorf("%+v: %v ahead, want %v", w, v.Ahead, ahead)
			}
		}); err != nil {
			t.Error(err)
		}
	}
}

// Clocks that differ by less than a message takes are not told apart.
func TestVisitOfOneClock(t *testing.T) {
	if err := lead(t, wire{latency: time.Millisecond, perByte: 1}, VisitLimit, func(ctx context.Context, l *Leader, e *end) {
		e.behind = 300 * time.Microsecond
		if v, err := l.Visit(ctx); v.Ahead != 0 || err != nil {
			t.Errorf("%+v, %v", v, err)
		}
	}); err != nil {
		t.Error(err)
	}
}

// A follower takes no more than it was told to allow, in either direction.
func TestFollowRefuses(t *testing.T) {
	for _, test := range []struct {
		size  int64
		count int
	}{{101, 1}, {100, 4}, {100, -4}, {8, math.MinInt}, {math.MaxInt64, 0}} {
		err := lead(t, wire{}, Limit{Bytes: 100, Count: 3}, func(ctx context.Context, l *Leader, _ *end) {
			if err := l.say(ctx, test.size, test.count); err != nil {
				t.Error(err)
			}
		})
		if err == nil || !strings.Contains(err.Error(), "allowed are 3 of 100") {
			t.Errorf("%d messages of %d bytes: %v", test.count, test.size, err)
		}
	}
}

// A line that is cut ends a measurement with its error. The text says at which step.
func TestCutLine(t *testing.T) {
	for cut := 1; cut < 12; cut++ {
		followed := lead(t, wire{}, VisitLimit, func(ctx context.Context, l *Leader, e *end) {
			e.cut = cut
			if _, err := l.Visit(ctx); !errors.Is(err, errCut) || cut == 1 && !strings.HasPrefix(err.Error(), "the first message: ") {
				t.Errorf("cut after %d: %v", cut, err)
			}
		})
		if !errors.Is(followed, context.DeadlineExceeded) {
			t.Errorf("cut after %d, the follower: %v", cut, followed)
		}
	}
}
