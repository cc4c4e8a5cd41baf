package join

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/levels/join/seal/sealtest"
)

// doorAttacks are what strangers do at a rank's port. known is the guard of a rank, of whose
// tickets they have seen one; foreign has files of another CA.
var doorAttacks = []struct {
	name string
	do   func(c net.Conn, known, foreign *guard) error // nil: the rank has taken it for one of its own
}{
	{"silence", func(c net.Conn, _, _ *guard) error { return hear(c) }},
	{"garbage", func(c net.Conn, _, _ *guard) error { c.Write(bytes.Repeat([]byte("x"), 4000)); return hear(c) }},
	{"garbage like TLS", func(c net.Conn, _, _ *guard) error {
		c.Write(append([]byte{0x16, 3, 1, 2, 0}, make([]byte, 4000)...))
		return hear(c)
	}},
	{"plain greeting", func(c net.Conn, _, _ *guard) error {
		return greet(c, rendezvousKey(testSecret), newGreeting(purposeRendezvous, 2, 0))
	}},
	{"TLS without a ticket", func(c net.Conn, known, _ *guard) error { return passFor(c, known, nil, "") }},
	{"TLS with a ticket seen before", func(c net.Conn, known, _ *guard) error { return passFor(c, known, nil, known.ticket(2)) }},
	{"TLS with a forged ticket", func(c net.Conn, known, foreign *guard) error { return passFor(c, known, nil, foreign.ticket(2)) }},
	{"TLS with a foreign certificate", func(c net.Conn, known, foreign *guard) error {
		return passFor(c, known, foreign, known.ticket(2))
	}},
}

// hear reads to the end.
func hear(c net.Conn) error {
	_, err := io.ReadAll(c)
	return errors.Join(errors.New("refused"), err)
}

// passFor dials as a rank without the secret, with a certificate of the guard by, or with one
// that proves nothing.
func passFor(c net.Conn, known, by *guard, ticket string) error {
	config, err := seal.Anonymous(known.protocol)
	if err != nil {
		return err
	}
	if by != nil {
		m, err := by.files.load()
		if err != nil {
			return err
		}
		config = seal.Mutual(known.protocol, &m.pair, nil)
	}
	if ticket != "" {
		config.NextProtos = append(config.NextProtos, ticket)
	}
	s, err := seal.Client(c, config)
	if err != nil {
		return err
	}
	return greet(s, rendezvousKey("guessed"), newGreeting(purposeRendezvous, 2, 0))
}

// meddler is somebody between rank 1 and rank 0's rendezvous who does one thing to one record
// of the first connection.
type meddler struct {
	kind  string
	up    bool // to rank 0
	index int
	draw  *rand.Rand
	done  atomic.Bool
}

var meddling = []string{"flip", "repeat", "leave out", "truncate", "swap with garbage"}

// pass moves records of one way.
func (m *meddler) pass(in, out net.Conn, mine bool) {
	defer out.Close()
	for i := 0; ; i++ {
		b := make([]byte, 5)
		if _, err := io.ReadFull(in, b); err != nil {
			return
		}
		b = append(b, make([]byte, binary.BigEndian.Uint16(b[3:]))...)
		if _, err := io.ReadFull(in, b[5:]); err != nil {
			return
		}
		in.SetReadDeadline(time.Time{})
		if mine && i == m.index && !m.done.Swap(true) {
			switch m.kind {
			case "flip":
				b[m.draw.IntN(len(b))] ^= 1 << m.draw.IntN(8)
			case "repeat":
				b = append(b, b...)
			case "leave out": // and cut if nothing follows: else it could be late
				b = nil
				in.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			case "truncate":
				out.Write(b[:len(b)/2])
				in.Close()
				return
			case "swap with garbage":
				for k := range b[5:] {
					b[5+k] = byte(m.draw.Uint32())
				}
			}
		}
		if _, err := out.Write(b); err != nil {
			in.Close()
			return
		}
	}
}

// TestAttacks besets the door of ranks that join, and the way there, with TLS by the secret
// and by certificates: nobody comes in, and the ranks do, or are told why not. The attacks on
// links are package executor's. TIERFLOW_TEST_ATTACKS is how many drawn seeds each
// kind gets; -v prints the table.
func TestAttacks(t *testing.T) {
	t.Parallel()
	drawn := 1
	if text := os.Getenv("TIERFLOW_TEST_ATTACKS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("TIERFLOW_TEST_ATTACKS=%q; allowed is a number of seeds, from 1 on", text)
		}
		drawn = n
	}
	ca, dir, elsewhere := authority(t, "train-ca"), t.TempDir(), t.TempDir()
	files := write(t, ca, dir, sealtest.Leaf{Name: "ranks.train"})
	other := Config{Size: 2, Secret: strings.Repeat("guessed ", 5), TLS: write(t, authority(t, "dev-ca"), elsewhere, sealtest.Leaf{Name: "ranks.train"})}
	foreign, err := newGuard(&other)
	if err != nil {
		t.Fatal(err)
	}
	for _, tls := range []string{tlsJob, files} {
		name, _, _ := strings.Cut(tls, "=")
		t.Run(name, func(t *testing.T) {
			var table strings.Builder
			fmt.Fprintf(&table, "%-32s %6s %8s %8s %10s\n", "attack", "tries", "let in", "joined", "in")
			for _, a := range doorAttacks {
				tries, in, took := atDoor(t, tls, 10*drawn, func(c net.Conn, known *guard) error { return a.do(c, known, foreign) })
				fmt.Fprintf(&table, "%-32s %6d %8d %8s %10v\n", a.name, tries, in, "yes", took.Round(time.Millisecond))
				if in > 0 {
					t.Errorf("%s: %d were let in", a.name, in)
				}
			}
			tries, took := flood(t, tls)
			fmt.Fprintf(&table, "%-32s %6d %8d %8s %10v\n", "flood of hellos", tries, 0, "yes", took.Round(time.Millisecond))
			seeds := []uint64{1, 2, 3}
			for range drawn {
				seeds = append(seeds, rand.Uint64())
			}
			for _, kind := range meddling {
				joined, refused, longest := onTheWay(t, tls, kind, seeds)
				fmt.Fprintf(&table, "%-32s %6d %8d %8s %10v\n", kind+" on the way", joined+refused, 0,
					fmt.Sprintf("%d, %d told", joined, refused), longest.Round(time.Millisecond))
			}
			t.Logf("\n%s", &table)
		})
	}
}

// atDoor lets strangers come while three ranks join, and returns how many were let in, and how
// long the ranks took.
func atDoor(t *testing.T, tls string, strangers int, do func(c net.Conn, known *guard) error) (tries, in int, took time.Duration) {
	t.Helper()
	cs := tlsConfigs(t, 3)
	setTLS(cs, tls)
	known, err := newGuard(&cs[1])
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var letIn atomic.Int64
	var conns []net.Conn
	for range strangers {
		c, err := net.Dial("tcp", cs[0].Rendezvous[0])
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		all.Go(func() {
			c.SetDeadline(time.Now().Add(20 * time.Second))
			if do(c, known) == nil {
				letIn.Add(1)
			}
		})
	}
	began := time.Now()
	jobs := mustJoin(t, cs)
	took = time.Since(began)
	closeAll(t, jobs)
	for _, c := range conns {
		c.Close()
	}
	all.Wait()
	return strangers, int(letIn.Load()), took
}

// flood sends hellos as fast as they are refused while 16 ranks join.
func flood(t *testing.T, tls string) (tries int, took time.Duration) {
	t.Helper()
	cs := tlsConfigs(t, 16)
	for r := range cs {
		cs[r].TLS, cs[r].Node = tls, fmt.Sprint("n", r/4)
	}
	known, err := newGuard(&cs[1])
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var count atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := net.Dial("tcp", cs[0].Rendezvous[0])
				if err != nil {
					return // rank 0 listens no more: all are in
				}
				c.SetDeadline(time.Now().Add(5 * time.Second))
				if passFor(c, known, nil, "") == nil {
					t.Error("a stranger was let in")
				}
				c.Close()
				count.Add(1)
			}
		})
	}
	began := time.Now()
	jobs := mustJoin(t, cs)
	took = time.Since(began)
	stop()
	closeAll(t, jobs)
	all.Wait()
	return int(count.Load()), took
}

// onTheWay lets somebody meddle with the way to the rendezvous, once for each seed. Both ranks
// join then, or rank 1 is told why not.
func onTheWay(t *testing.T, tls, kind string, seeds []uint64) (joined, refused int, longest time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, seed := range seeds {
		cs := tlsConfigs(t, 2)
		draw := rand.New(rand.NewPCG(seed, 0))
		m := &meddler{kind: kind, up: draw.IntN(2) == 0, index: draw.IntN(10), draw: draw}
		comeBetween(t, cs, func(c, up net.Conn) {
			var both sync.WaitGroup
			both.Go(func() { m.pass(c, up, m.up) })
			both.Go(func() { m.pass(up, c, !m.up) })
			both.Wait()
		})
		setTLS(cs, tls)
		all.Go(func() {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var zero *Job
			told := make(chan error, 1)
			go func() { // waited for below
				var err error
				if zero, err = Join(ctx, cs[0]); err != nil {
					cancel() // as a launcher would: rank 1 tries until its time is up
				}
				told <- err
			}()
			one, err := Join(ctx, cs[1])
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("%s, seed %d: rank 1 hangs: %v", kind, seed, err)
			}
			named := isPeerError(err)
			switch {
			case err == nil:
				// The last word of joining can't be acknowledged: rank 1 hears of it at its first call. If it is meddled with,
				// rank 0 has lost rank 1.
				if err = <-told; err != nil && !isPeerError(err) && !isLossOf(err, 1) {
					t.Errorf("%s, seed %d: rank 1 has joined, rank 0 not: %v", kind, seed, err)
				}
			case !named && !errors.Is(err, ErrTLS) && !errors.Is(err, ErrSecret):
				t.Errorf("%s, seed %d: rank 1: %v", kind, seed, err)
			}
			took := time.Since(began)
			if one == nil {
				cancel()
				<-told
			}
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, took)
			if one != nil && zero != nil {
				joined++
				var both sync.WaitGroup
				for _, j := range []*Job{zero, one} {
					both.Go(func() { j.Close(context.Background()) })
				}
				both.Wait()
				return
			}
			refused++
		})
	}
	all.Wait()
	return joined, refused, longest
}

// isLossOf reports whether a join failed because of one rank alone.
func isLossOf(err error, rank levels.Rank) bool {
	e, is := errors.AsType[*JoinError](err)
	return is && slices.Equal(e.Ranks, []levels.Rank{rank})
}

func isPeerError(err error) bool {
	_, is := errors.AsType[*PeerError](err)
	return is
}
