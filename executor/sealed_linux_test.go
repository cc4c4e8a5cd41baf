package executor_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/tasks"
)

// flipper is somebody on the way: he changes one bit behind so many bytes, and keeps all
// bytes.
type flipper struct {
	after int64 // bytes, of both ways; negative: he changes nothing
	count atomic.Int64
	hit   atomic.Bool
	mu    sync.Mutex
	seen  []byte
}

func (f *flipper) tamper(_, _ levels.Rank, in, out *net.TCPConn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		f.mu.Lock()
		f.seen = append(f.seen, buf[:n]...)
		f.mu.Unlock()
		begin := f.count.Add(int64(n)) - int64(n)
		if at := f.after - begin; f.after >= 0 && at >= 0 && at < int64(n) {
			buf[at] ^= 1
			f.hit.Store(true)
		}
		if _, werr := out.Write(buf[:n]); err != nil || werr != nil {
			out.CloseWrite()
			if werr != nil {
				in.Close()
			}
			return
		}
	}
}

// TestSealedBetweenNodes sends from one node to another while somebody on the way changes a bit.
// Over plain TCP results are wrong and nobody knows. With TLS none is, both ranks name the
// other one as soon as the bit has come, and what passes can't be read.
func TestSealedBetweenNodes(t *testing.T) {
	pattern := bytes.Repeat([]byte("gradient"), 25_000)
	run := func(t *testing.T, tls bool, after int64) (wrong int, errs []error, f *flipper) {
		f = &flipper{after: after}
		h, plan := parse(t, "2x1", "shape=flat,fs=64KiB,w=4,i=adapt/binomial")
		p, err := newProcesses(h, proc.Config{}, f.tamper, tls)
		if err != nil {
			t.Fatal(err)
		}
		recv := [][]byte{bytes.Clone(pattern), make([]byte, len(pattern))}
		runs := job{p.World, h, tasks.Request{Coll: tasks.Bcast, Count: int64(len(pattern)), Type: tasks.Uint8}, plan}.bind(t, nil, recv)
		began, spoilt := time.Now(), make([]bool, 2)
		errs = ranks(t, p.World, func(ctx context.Context, r int) error {
			for range 3 {
				if err := runs[r].Do(ctx); err != nil {
					return err
				}
				if !bytes.Equal(recv[r], pattern) {
					spoilt[r] = true // and go on: the other rank needs this one
				}
			}
			return nil
		})
		for r, err := range errs {
			if spoilt[r] {
				wrong++
			}
			if err != nil && !names(err, levels.Rank(1-r)) {
				t.Errorf("flipped behind %d bytes: rank %d: %v", after, r, err)
			}
		}
		if took := time.Since(began); took > patience/2 {
			t.Errorf("flipped behind %d bytes: the ranks took %v", after, took)
		}
		closeProcesses(t, p)
		return wrong, errs, f
	}

	wrong, _, f := run(t, false, 100_000)
	if !bytes.Contains(f.seen, pattern[:64]) || wrong == 0 {
		t.Errorf("over plain TCP %d ranks had wrong results, and the payload was seen: %t; the test can't fail", wrong, bytes.Contains(f.seen, pattern[:64]))
	}
	_, errs, f := run(t, true, -1)
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if bytes.Contains(f.seen, pattern[:8]) {
		t.Error("the payload was seen with TLS")
	}
	handshake := int64(8000) // more than it has; flips in it are for package seal's tests
	places := []int64{handshake, handshake + 5, 20_000, 100_000, 200_000, 300_000}
	for range 10 {
		places = append(places, handshake+rand.Int64N(300_000))
	}
	for _, after := range places {
		wrong, errs, f := run(t, true, after)
		if wrong > 0 {
			t.Errorf("flipped behind %d bytes: %d ranks had wrong results", after, wrong)
		}
		// A rank that hears of it from the other one first has its text.
		named := func(err error) bool { return err != nil && strings.Contains(err.Error(), seal.ErrDamaged.Error()) }
		if f.hit.Load() && !slices.ContainsFunc(errs, named) {
			t.Errorf("flipped behind %d bytes: %v", after, errs)
		}
	}
}
