package join

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// die ends a rank of this process as far as others see it.
func (j *Job) die() {
	j.endLife()
	j.door.shut()
	for _, e := range j.allEdges() {
		e.current().Close()
	}
}

// TestMend breaks connections of the tree under traffic. No message is lost, comes twice or out of order, and
// nobody is lost.
func TestMend(t *testing.T) {
	for range 3 {
		seed := rand.Uint64()
		draw := rand.New(rand.NewPCG(seed, 0))
		n, nodes, messages := 2+draw.IntN(7), 2+draw.IntN(4), 200+draw.IntN(400)
		t.Logf("seed %d: %d ranks on up to %d nodes, %d messages of each", seed, n, nodes, messages)
		cs := configs(t, n)
		for r := range cs {
			cs[r].Node = fmt.Sprint("node", draw.IntN(nodes))
		}
		jobs := mustJoin(t, cs)
		var lost atomic.Int32
		got := make([]*counts, n)
		for r, j := range jobs {
			got[r] = &counts{next: make([]uint32, n)}
			j.OnLost(func(levels.Rank, error) { lost.Add(1) })
			j.OnControl(got[r].take)
		}
		breaks, over := 0, make(chan struct{})
		var breaker sync.WaitGroup
		breaker.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Duration(draw.IntN(10)) * time.Millisecond):
				}
				if jobs[draw.IntN(n)].breakEdge(draw) {
					breaks++
				}
			}
		})
		onAll(t, jobs, func(j *Job) error {
			for i := range messages {
				b := binary.BigEndian.AppendUint32(make([]byte, i%7*500), uint32(i))
				if err := clocktest.Await(t.Context(), func() bool { return j.Broadcast(1, b) == nil }); err != nil {
					return err
				}
				if i%20 == 0 { // the breaks are between messages
					clocktest.Pause(t.Context(), 5*time.Millisecond)
				}
			}
			return nil
		})
		clocktest.Until(t, "all messages have come", func() bool {
			return !slices.ContainsFunc(jobs, func(j *Job) bool { return !got[j.Rank].isFull(j.Rank, uint32(messages)) })
		})
		close(over)
		breaker.Wait()
		onAll(t, jobs, func(j *Job) error { // what was just broken is whole again, too
			_, err := j.Exchange(t.Context(), []byte("done"))
			return err
		})
		closeAll(t, jobs)
		for r, c := range got {
			if c.wrong != "" {
				t.Errorf("seed %d: rank %d: %s", seed, r, c.wrong)
			}
		}
		if lost.Load() > 0 {
			t.Errorf("seed %d: %d losses after %d breaks", seed, lost.Load(), breaks)
		}
		t.Logf("%d connections broken", breaks)
	}
}

// breakEdge resets or ends the connection of an edge, if one is TCP.
func (j *Job) breakEdge(draw *rand.Rand) bool {
	e := j.edges[draw.IntN(len(j.edges))]
	c, ok := e.current().(*net.TCPConn)
	if !ok {
		return false
	}
	switch draw.IntN(3) {
	case 0:
		c.CloseWrite()
	case 1:
		c.SetLinger(0)
		c.Close()
	default:
		c.Close()
	}
	return true
}

// counts are the messages that have come to a rank.
type counts struct {
	mu    sync.Mutex
	next  []uint32 // by sender
	wrong string
}

func (c *counts) take(from levels.Rank, _ uint8, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := binary.BigEndian.Uint32(payload[len(payload)-4:]); i != c.next[from] && c.wrong == "" {
		c.wrong = fmt.Sprintf("message %d of rank %d in place of %d", i, from, c.next[from])
	}
	c.next[from]++
}

func (c *counts) isFull(but levels.Rank, n uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r, next := range c.next {
		if levels.Rank(r) != but && next < n {
			return false
		}
	}
	return true
}
