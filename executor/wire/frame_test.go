package wire_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
)

// A frame has all of a message that travels.
func TestFrameRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, l := range wiretest.DrawLetters(r, 500, 10_000) {
		m := l.Message
		n := len(l.Payload)
		if l.IsLarge() && n > 1 { // in parts
			m.Offset = int64(r.IntN(n))
			n = r.IntN(n - int(m.Offset) + 1)
		}
		b := wire.AppendFrame([]byte("before"), &m, n)
		got, length, err := wire.ParseFrame(b[len("before"):], 1<<20)
		if err != nil || length != n || got != m {
			t.Fatalf("seed %d: %+v with %d bytes came as %+v with %d: %v", seed, m, n, got, length, err)
		}
	}
}

// Headers that no link writes are errors of the protocol.
func TestForeignFrames(t *testing.T) {
	good := func() wire.Message { return wire.Message{Kind: wire.Eager, Comm: 1, Seq: 2, Size: 8} }
	for name, c := range map[string]struct {
		change func(m *wire.Message)
		bytes  int // of payload
		poke   int // a byte of the header to set; 0: none
	}{
		"no kind":             {change: func(m *wire.Message) { m.Kind = 0 }},
		"unknown kind":        {change: func(m *wire.Message) { m.Kind = wire.MaxKind }},
		"negative size":       {change: func(m *wire.Message) { m.Size = -1 }},
		"negative offset":     {change: func(m *wire.Message) { m.Kind, m.Offset = wire.Data, -8 }},
		"negative refund":     {change: func(m *wire.Message) { m.Refund = -1 }},
		"part beyond its end": {change: func(m *wire.Message) { m.Kind, m.Offset = wire.Data, 4 }, bytes: 5},
		"offset of a whole":   {change: func(m *wire.Message) { m.Offset = 1 }, bytes: 8},
		"too little":          {bytes: 7},
		"too much at once":    {change: func(m *wire.Message) { m.Size = 101 }, bytes: 101},
		"credit with bytes":   {change: func(m *wire.Message) { m.Kind = wire.Credit }, bytes: 8},
		"bye with a size":     {change: func(m *wire.Message) { m.Kind = wire.Bye }},
		"frame too long":      {change: func(m *wire.Message) { m.Kind, m.Size = wire.Data, 1<<30 }, bytes: wire.MaxFrame + 1},
		"padding of the kind": {bytes: 8, poke: 1},
		"padding of the rest": {bytes: 8, poke: 39},
	} {
		m := good()
		if c.change != nil {
			c.change(&m)
		}
		b := wire.AppendFrame(nil, &m, c.bytes)
		if c.poke > 0 {
			b[c.poke] = 1
		}
		if got, _, err := wire.ParseFrame(b, 100); !errors.Is(err, wire.ErrProtocol) {
			t.Errorf("%s: %+v, %v; want an error of the protocol", name, got, err)
		}
	}
	m := good()
	b := wire.AppendFrame(nil, &m, 8)
	if _, _, err := wire.ParseFrame(b[:wire.FrameHeader-1], 100); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("a short header: %v", err)
	}
	if _, _, err := wire.ParseFrame(b, 100); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// Any bytes are an error, or a frame with possible lengths that would be written the same.
func FuzzParseFrame(f *testing.F) {
	f.Add([]byte("short"))
	f.Add(wire.AppendFrame(nil, &wire.Message{Kind: wire.Data, Size: 1 << 40, Offset: 1 << 20}, wire.MaxFrame))
	for _, l := range wiretest.DrawLetters(rand.New(rand.NewPCG(1, 2)), 20, 1000) {
		f.Add(wire.AppendFrame(nil, &l.Message, len(l.Payload)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, n, err := wire.ParseFrame(b, 4096)
		if err != nil {
			if !errors.Is(err, wire.ErrProtocol) {
				t.Errorf("%v is no error of the protocol", err)
			}
			return
		}
		if n < 0 || n > wire.MaxFrame || m.Size < 0 || m.Offset < 0 || m.Kind.IsLarge() && m.Offset+int64(n) > m.Size {
			t.Errorf("%d bytes at %d of %d", n, m.Offset, m.Size)
		}
		if again := wire.AppendFrame(nil, &m, n); !bytes.Equal(again, b[:wire.FrameHeader]) {
			t.Errorf("% x was read as %+v, which is % x", b[:wire.FrameHeader], m, again)
		}
	})
}
