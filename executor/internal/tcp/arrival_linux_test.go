package tcp

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// The pace of a payload in pieces is that of the pieces after the first. A rank that has looked
// elsewhere meanwhile learns nothing. The clock of the bubble is exact.
func TestArrivalPace(t *testing.T) {
	const first, piece, ticks = 1000, 20_000, 8 // bytes, and milliseconds from one piece to the next
	for _, blind := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			mine, peers := sockets(t, 0)
			l, s := NewLink(1, 4096), &quiet{dst: make([]byte, first+2*piece)}
			l.Lookout = &Lookout{}
			l.Attach(mine)
			for range fewestPaces {
				m := wire.Message{Kind: wire.Data, Size: first + 2*piece}
				frame := append(wire.AppendFrame(nil, &m, first+2*piece), make([]byte, first+2*piece)...)
				for _, n := range []int{wire.FrameHeader + first, piece, piece} {
					write(t, peers, frame[:n])
					frame = frame[n:]
					arrived(t, mine, n)
					l.Poll(s)
					l.Lookout.Note()
					for range ticks {
						clocktest.Pass(time.Millisecond)
						if !blind {
							l.Lookout.Note()
						}
					}
				}
			}
			const pace, long = 2 * piece * 1000 / (2 * ticks), fewestPaces * 2 * ticks * time.Millisecond
			want := wire.Pace{Best: pace, Median: pace, Waited: long}
			if blind {
				want = wire.Pace{}
			}
			if p := l.came.pace(); p != want {
				t.Errorf("blind %v: %+v, want %+v", blind, p, want)
			}
			if l.Lookout.midway != 0 {
				t.Errorf("%d payloads are still on their way", l.Lookout.midway)
			}
		})
	}
}

// arrived returns when so many bytes can be read from a socket.
func arrived(t *testing.T, fd, bytes int) {
	t.Helper()
	for n := 0; n < bytes; {
		var err error
		if n, err = unix.IoctlGetInt(fd, unix.TIOCINQ); err != nil {
			t.Fatal(err)
		}
	}
}

// write writes all of b to a socket whose buffer has room for it.
func write(t *testing.T, fd int, b []byte) {
	t.Helper()
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err != nil {
			t.Fatal(err)
		}
		b = b[n:]
	}
}
