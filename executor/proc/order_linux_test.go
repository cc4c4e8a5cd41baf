package proc

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/internal/tcp"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
	"github.com/tierflow/tierflow/levels"
)

// Messages worth a packet leave in the order in which they are posted, as soon as one to
// another node follows. Those to one node, short ones, and those beside a large payload wait
// for a flush.
func TestPostsLeaveInOrder(t *testing.T) {
	const large = 100_000
	for _, c := range []struct {
		name string
		size int // of the messages, bytes
		put  bool
		to   []levels.Rank
		want [2]int // messages that came to each rank without a flush
	}{
		{"in turns", 2000, false, []levels.Rank{0, 1, 0, 1, 0}, [2]int{2, 2}},
		{"to one", 2000, false, []levels.Rank{0, 0, 0}, [2]int{0, 0}},
		{"to one, then to another", 2000, false, []levels.Rank{0, 0, 1}, [2]int{2, 0}},
		{"short", 100, false, []levels.Rank{0, 1, 0, 1}, [2]int{0, 0}},
		{"beside a large payload", 2000, true, []levels.Rank{0, 1, 0, 1}, [2]int{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &process{}
			var peers [2]int
			for r := range levels.Rank(2) {
				mine, theirs := wiretest.Sockets(t)
				defer unix.Close(theirs)
				peers[r] = theirs
				l := tcp.NewLink(r, 4096)
				l.Attach(mine)
				defer l.Close()
				p.links, p.far = append(p.links, l), append(p.far, l)
			}
			if c.put {
				p.Put(0, &wire.Message{Kind: wire.Data, Size: large}, make([]byte, large), 0)
			}
			frame := len(wire.AppendFrame(nil, &wire.Message{Kind: wire.Eager, Size: int64(c.size)}, c.size)) + c.size
			for _, to := range c.to {
				p.Post(to, &wire.Message{Kind: wire.Eager, Size: int64(c.size)}, make([]byte, c.size))
			}
			for r, fd := range peers {
				b := make([]byte, 10*frame)
				n, err := unix.Read(fd, b)
				if err == unix.EAGAIN {
					n, err = 0, nil
				}
				if err != nil || n != c.want[r]*frame {
					t.Errorf("%d bytes came to rank %d, want %d messages of %d, error %v", n, r, c.want[r], frame, err)
				}
			}
		})
	}
}
