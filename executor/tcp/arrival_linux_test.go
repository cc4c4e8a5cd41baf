package tcp

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/wire"
)

// The pace of a payload in pieces is that of the pieces after the first. A rank that has looked
// elsewhere meanwhile learns nothing.
func TestArrivalPace(t *testing.T) {
	const piece, pause, ticks = 20_000, 8 * time.Millisecond, 8
	for _, blind := range []bool{false, true} {
		mine, peers := sockets(t, 0)
		l, s := NewLink(1, 4096), &quiet{dst: make([]byte, 3*piece)}
		l.Lookout = &Lookout{}
		l.Attach(mine)
		for n := 0; n < fewestPaces || !blind && l.came.count < fewestPaces; n++ { // a test that is busy elsewhere tries again
			m := wire.Message{Kind: wire.Data, Size: 3 * piece}
			frame := append(wire.AppendFrame(nil, &m, 3*piece), make([]byte, 3*piece)...)
			for part := range 3 {
				end := wire.FrameHeader + (part+1)*piece
				begin := 0
				if part > 0 {
					begin = end - piece
				}
				write(t, peers, frame[begin:end])
				l.Poll(s)
				l.Lookout.Note()
				for range ticks {
					time.Sleep(pause / ticks)
					if !blind {
						l.Lookout.Note()
					}
				}
			}
		}
		p := l.came.pace()
		const most = 2 * piece * 1000 / (2 * int64(pause/time.Millisecond))
		if blind && p.Best != 0 || !blind && (p.Best == 0 || p.Best > most || p.Median > p.Best) {
			t.Errorf("blind %v: %+v, want at most %d bytes/s", blind, p, most)
		}
		if l.Lookout.midway != 0 {
			t.Errorf("%d payloads are still on their way", l.Lookout.midway)
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
