package planner_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

const (
	hostileRanks = 4
	hostileWave  = 250 // connections that the attackers keep open at a time

	// What strangers may cost: package join lets so many of them into the handshake
	// of each listener, which takes a descriptor, a goroutine and some hundred bytes.
	strangers     = 64
	strangerBytes = 16 << 10
)

// TestHostileConnections besets the rendezvous while ranks join, and all listeners
// while they run collectives over links that are dialled meanwhile: with garbage,
// a flood, silence, half a greeting, wrong secrets, handshakes that were recorded,
// and lengths beyond all bounds. The job goes on, computes right, and what
// strangers cost is bounded by the handshakes that are let in at a time.
func TestHostileConnections(t *testing.T) {
	waves := 4
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		waves = 40
	}
	var log refusedLines
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tap := tapped(t, l.Addr().String())
	usage := sample()
	before := attack{ports: []string{l.Addr().String()}, tap: tap}
	var early sync.WaitGroup
	early.Go(func() { before.wave() })
	// They are there first: the rendezvous ends when all ranks have joined.
	clocktest.Until(t, "a wave of strangers is there", func() bool { return before.opened.Load() >= hostileWave })

	comms := make([]*planner.Comm, hostileRanks)
	var g errgroup.Group
	for r := range hostileRanks {
		g.Go(func() (err error) {
			cfg := join.Config{
				Rank: levels.Rank(r), Size: hostileRanks, Rendezvous: []string{l.Addr().String()},
				Secret: "a test", Node: fmt.Sprintf("node%d", r/2), Log: slog.New(&log),
			}
			switch r {
			case 0:
				cfg.Listener = l
			case 3:
				cfg.Rendezvous = []string{tap.address}
			}
			comms[r], err = raw.JoinAs(t.Context(), cfg, nil)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	early.Wait()

	during := attack{ports: listening(t), tap: tap}
	var over atomic.Bool
	var late sync.WaitGroup
	late.Go(func() {
		for range waves - 1 {
			during.wave()
		}
		over.Store(true)
	})
	calls := 0
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		for n := 0; ; n++ {
			more := []int32{0}
			if !over.Load() {
				more[0] = 1
			}
			data := make([]int64, 20_000)
			for i := range data {
				data[i] = int64(i + c.Rank())
			}
			if err := errors.Join(
				planner.Allreduce(ctx, c, more, more, tasks.Max),
				planner.Allreduce(ctx, c, data, data, tasks.Sum),
			); err != nil {
				return err
			}
			for i, got := range data {
				if want := int64(hostileRanks*i + hostileRanks*(hostileRanks-1)/2); got != want {
					return fmt.Errorf("call %d: element %d is %d, want %d", n, i, got, want)
				}
			}
			if more[0] == 0 {
				if c.Rank() == 0 {
					calls = n
				}
				return nil
			}
			clocktest.Pause(ctx, time.Millisecond) // the cores are for the strangers too
		}
	}))
	late.Wait()
	heap, files := usage.most()
	closeAll(t, comms)

	listeners := int64(len(during.ports))
	opened := before.opened.Load() + during.opened.Load()
	t.Logf("%d hostile connections, %d calls meanwhile, heap +%d KiB, descriptors +%d, %d log lines",
		opened, calls, heap>>10, files, log.n.Load())
	if want := int64(waves * hostileWave * 9 / 10); opened < want {
		t.Errorf("only %d connections were opened, want %d", opened, want)
	}
	// Beside the strangers there are the job itself and the attackers' own ends.
	const job, own = 16 << 20, 128
	if most := listeners*strangers*strangerBytes + hostileWave*strangerBytes + job; heap > most {
		t.Errorf("the heap grew by %d bytes, allowed are %d", heap, most)
	}
	if most := listeners*strangers + hostileWave + own; files > most {
		t.Errorf("%d more descriptors, allowed are %d", files, most)
	}
	if n := log.n.Load(); n < 1 || n > listeners+1 {
		t.Errorf("%d log lines, want one for each of %d listeners and the rendezvous at most, all from one address", n, listeners)
	}
}

// refusedLines counts log lines.
type refusedLines struct {
	slog.Handler
	n atomic.Int64
}

func (l *refusedLines) Enabled(context.Context, slog.Level) bool { return true }

func (l *refusedLines) Handle(context.Context, slog.Record) error {
	l.n.Add(1)
	return nil
}

// attack is on some listeners.
type attack struct {
	ports  []string
	tap    *tap
	opened atomic.Int64
}

// wave opens connections, keeps them for a while and closes them.
func (a *attack) wave() {
	var all sync.WaitGroup
	for i := range hostileWave {
		all.Go(func() {
			c, err := net.DialTimeout("tcp", a.ports[i%len(a.ports)], 5*time.Second)
			if err != nil {
				return // the rendezvous ends when all have joined
			}
			defer c.Close()
			a.opened.Add(1)
			_ = c.SetDeadline(time.Now().Add(300 * time.Millisecond))
			_, _ = c.Write(a.opening(i / len(a.ports)))
			_, _ = io.Copy(io.Discard, c) // until the deadline, or the end
		})
	}
	all.Wait()
}

var flood = make([]byte, 1<<20)

// opening is what a stranger says first.
func (a *attack) opening(kind int) []byte {
	greeting := func(to uint32) []byte { // of rank 2, for a data link
		b := binary.BigEndian.AppendUint16([]byte("tfj1"), 1)
		b = append(b, 1)
		b = binary.BigEndian.AppendUint32(b, 2)
		b = binary.BigEndian.AppendUint32(b, to)
		return append(b, make([]byte, 32)...)
	}
	switch kind % 7 {
	case 0:
		return []byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n")
	case 1:
		return flood
	case 2:
		return nil
	case 3:
		return greeting(0)[:20]
	case 4: // a proof with another secret
		return append(greeting(uint32(kind/7)%hostileRanks), make([]byte, 33)...)
	case 5:
		return a.tap.said()
	default: // lengths, if it were past the handshake
		return append(greeting(0), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"...)
	}
}

// tap records what one rank says to the rendezvous.
type tap struct {
	address string
	mu      sync.Mutex
	bytes   []byte
}

func (p *tap) said() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]byte(nil), p.bytes...)
}

func (p *tap) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes = append(p.bytes, b...)
	return len(b), nil
}

// tapped forwards connections to an address; the test waits for its goroutines.
func tapped(t *testing.T, to string) *tap {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{address: l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			all.Go(func() { _, _ = io.Copy(out, io.TeeReader(in, p)); out.Close() })
			all.Go(func() { _, _ = io.Copy(in, out); in.Close() })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return p
}

// usage samples what the process uses.
type usage struct {
	done        chan bool
	ended       sync.WaitGroup
	heap, files int64
}

func sample() *usage {
	s := &usage{done: make(chan bool)}
	heap, files := used()
	s.ended.Go(func() {
		for {
			h, f := used()
			s.heap, s.files = max(s.heap, h-heap), max(s.files, f-files)
			select {
			case <-s.done:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return s
}

// most is how much more it was than at the beginning.
func (s *usage) most() (heap, files int64) {
	close(s.done)
	s.ended.Wait()
	return s.heap, s.files
}

func used() (heap, files int64) {
	runtime.GC() // garbage is the collector's, not the strangers'
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd")
	return int64(m.HeapInuse + m.StackInuse), int64(len(open))
}

// listening lists the TCP ports on which this process listens.
func listening(t *testing.T) (ports []string) {
	t.Helper()
	mine := map[string]bool{}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil {
			mine[to] = true
		}
	}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue // without IPv6
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			col := strings.Fields(lines.Text())
			var port int
			if len(col) < 10 || col[3] != "0A" || !mine["socket:["+col[9]+"]"] {
				continue
			}
			if _, err := fmt.Sscanf(col[1][strings.LastIndexByte(col[1], ':')+1:], "%X", &port); err == nil {
				ports = append(ports, fmt.Sprintf("127.0.0.1:%d", port))
			}
		}
		f.Close()
	}
	return ports
}
