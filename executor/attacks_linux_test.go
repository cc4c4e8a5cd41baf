package executor_test

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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/levels/join/seal/sealtest"
	"github.com/tierflow/tierflow/tasks"
)

// Records of TLS 1.3.
const (
	recordHeader = 5
	recordTag    = 16
	// ofHandshake is how many records of a direction are the handshake's at most. Attacks on
	// these are package join's to test.
	ofHandshake = 8
)

// assault is somebody on the way between two ranks who does one thing to one record.
type assault struct {
	kind  string
	from  levels.Rank // of the record
	index int         // of the record, behind the handshake's
	draw  *rand.Rand

	mu   sync.Mutex
	at   time.Time // when it was done; zero: not yet
	cut  bool      // the connection ended with it
	seen []byte    // the last record the other way
}

// attacks are all kinds, with what is written in place of a record. next is the record behind
// it, nil if none came; more says whether the connection goes on.
var attacks = []struct {
	name string
	do   func(a *assault, record []byte, next func() []byte) (out []byte, more bool)
}{
	{"flip in a header", func(a *assault, r []byte, _ func() []byte) ([]byte, bool) { return a.flip(r, 0, recordHeader), true }},
	{"flip in a body", func(a *assault, r []byte, _ func() []byte) ([]byte, bool) {
		return a.flip(r, recordHeader, max(recordHeader+1, len(r)-recordTag)), true
	}},
	{"flip in a tag", func(a *assault, r []byte, _ func() []byte) ([]byte, bool) {
		return a.flip(r, len(r)-recordTag, len(r)), true
	}},
	{"repeat", func(_ *assault, r []byte, _ func() []byte) ([]byte, bool) { return append(r, r...), true }},
	{"reorder", func(_ *assault, r []byte, next func() []byte) ([]byte, bool) {
		second := next()
		return append(second, r...), second != nil
	}},
	{"leave out", func(_ *assault, _ []byte, next func() []byte) ([]byte, bool) {
		second := next()
		return second, second != nil // else cut: what nobody follows could be late
	}},
	{"reflect", func(a *assault, r []byte, _ func() []byte) ([]byte, bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.seen == nil {
			return a.flip(r, 0, len(r)), true
		}
		return a.seen, true
	}},
	{"splice", func(_ *assault, _ []byte, _ func() []byte) ([]byte, bool) {
		one, _, err := sealtest.Sessions()
		if err != nil {
			return nil, false
		}
		return one.Seal(nil, make([]byte, 64)), true // of a connection of his own
	}},
	{"inject a plain frame", func(_ *assault, r []byte, _ func() []byte) ([]byte, bool) {
		return append(wire.AppendFrame(nil, &wire.Message{Kind: wire.Eager, Size: 8}, 8), r...), true
	}},
	{"make it the end", func(_ *assault, r []byte, _ func() []byte) ([]byte, bool) { r[0] = 21; return r, true }},
	{"truncate between records", func(_ *assault, r []byte, _ func() []byte) ([]byte, bool) { return r, false }},
	{"truncate in a record", func(_ *assault, r []byte, _ func() []byte) ([]byte, bool) { return r[:len(r)/2], false }},
}

// flip flips a bit of record[from:to].
func (a *assault) flip(record []byte, from, to int) []byte {
	record[from+a.draw.IntN(to-from)] ^= 1 << a.draw.IntN(8)
	return record
}

// readRecord reads the next record; nil: there is none.
func readRecord(in io.Reader) []byte {
	b := make([]byte, recordHeader, recordHeader+seal.MaxPlain+recordTag)
	if _, err := io.ReadFull(in, b); err != nil {
		return nil
	}
	n := int(binary.BigEndian.Uint16(b[3:]))
	b = append(b, make([]byte, n)...)
	if _, err := io.ReadFull(in, b[recordHeader:]); err != nil {
		return nil
	}
	return b
}

// tamper moves records, and changes the one.
func (a *assault) tamper(from, _ levels.Rank, in, out *net.TCPConn) {
	defer out.CloseWrite()
	for i := 0; ; i++ {
		record := readRecord(in)
		if record == nil {
			return
		}
		more := true
		switch {
		case from != a.from:
			a.mu.Lock()
			if i >= ofHandshake {
				a.seen = bytes.Clone(record)
			}
			a.mu.Unlock()
		case i == ofHandshake+a.index:
			for _, kind := range attacks {
				if kind.name != a.kind {
					continue
				}
				record, more = kind.do(a, record, func() []byte {
					in.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
					defer in.SetReadDeadline(time.Time{})
					return readRecord(in)
				})
			}
			a.mu.Lock()
			a.at, a.cut = time.Now(), !more
			a.mu.Unlock()
		}
		if _, err := out.Write(record); err != nil || !more {
			in.Close()
			return
		}
	}
}

// attackRow sums up one kind of attack.
type attackRow struct {
	runs, done   int // done: the record came
	named, wrong int // ranks that named the other one; wrong elements
	longest      time.Duration
}

// TestAttacks lets somebody between two ranks do each thing of a list, to records that fixed
// and drawn seeds choose, while the ranks run collectives. Each time both ranks must name the
// other one, and no element may be wrong. TIERFLOW_TEST_ATTACKS is how many drawn seeds each
// kind gets; -v prints the table.
func TestAttacks(t *testing.T) {
	t.Parallel() // as its kinds are: they mostly wait
	drawn := 1
	if text := os.Getenv("TIERFLOW_TEST_ATTACKS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("TIERFLOW_TEST_ATTACKS=%q; allowed is a number of seeds, from 1 on", text)
		}
		drawn = n
	}
	seeds := []uint64{1}
	for range drawn {
		seeds = append(seeds, rand.Uint64())
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-26s %6s %6s %8s %10s %14s\n", "attack", "runs", "done", "named", "longest", "wrong elements")
	done, rows := 0, make([]attackRow, len(attacks))
	t.Run("kinds", func(t *testing.T) {
		for k, kind := range attacks {
			t.Run(kind.name, func(t *testing.T) {
				t.Parallel()
				for _, seed := range seeds {
					rows[k].add(t, kind.name, seed)
				}
			})
		}
	})
	for k, kind := range attacks {
		row := rows[k]
		fmt.Fprintf(&table, "%-26s %6d %6d %7.0f%% %10v %14d\n", kind.name, row.runs, row.done,
			100*float64(row.named)/float64(max(2*row.done, 1)), row.longest.Round(time.Millisecond), row.wrong)
		done += row.done
		if row.named != 2*row.done || row.wrong > 0 {
			t.Errorf("%s: %d of %d ranks have named the other one, %d elements are wrong", kind.name, row.named, 2*row.done, row.wrong)
		}
	}
	if runs := len(seeds) * len(attacks); done < runs*9/10 {
		t.Errorf("%d of %d attacks were done", done, runs)
	}
	t.Logf("\n%s", &table)
}

// add plays one attack.
func (row *attackRow) add(t *testing.T, kind string, seed uint64) {
	const elements, rounds = 10_000, 200
	draw := rand.New(rand.NewPCG(seed, 0))
	a := &assault{kind: kind, from: levels.Rank(draw.IntN(2)), index: draw.IntN(60), draw: draw}
	h, plan := parse(t, "2x1", "shape=flat,fs=32KiB,w=4,i=adapt/binomial")
	p, err := newProcesses(h, proc.Config{}, a.tamper, true)
	if err != nil {
		t.Fatal(err)
	}
	request := tasks.Request{Coll: tasks.Allreduce, Count: elements, Type: tasks.Int64, Op: tasks.Sum}
	send, recv := make([][]byte, 2), make([][]byte, 2)
	for r := range 2 {
		recv[r] = make([]byte, 8*elements)
		for i := range int64(elements) {
			send[r] = binary.LittleEndian.AppendUint64(send[r], uint64(i*int64(r+1)))
		}
	}
	runs := job{p.World, h, request, plan}.bind(t, send, recv)
	wrong := make([]int, 2)
	errs := ranks(t, p.World, func(ctx context.Context, r int) error {
		for range rounds {
			clear(recv[r])
			if err := runs[r].Do(ctx); err != nil {
				return err
			}
			for i := range int64(elements) {
				if int64(binary.LittleEndian.Uint64(recv[r][8*i:])) != 3*i {
					wrong[r]++
				}
			}
		}
		return nil
	})
	ended := time.Now()
	row.runs++
	row.wrong += wrong[0] + wrong[1]
	a.mu.Lock()
	at, cut := a.at, a.cut // the end of one that was cut may look like a reset
	a.mu.Unlock()
	if !at.IsZero() {
		row.done++
		row.longest = max(row.longest, ended.Sub(at))
		for r, err := range errs {
			if err != nil && names(err, levels.Rank(1-r)) {
				row.named++
			}
		}
		// Each may have heard the other's word before its own connection had ended here: then the text tells it.
		said := fmt.Sprint(errors.Join(errs...))
		if !cut && !strings.Contains(said, seal.ErrDamaged.Error()) && !strings.Contains(said, seal.ErrTruncated.Error()) {
			t.Errorf("%s, seed %d: %s", kind, seed, said)
		}
	}
	if row.named != 2*row.done || row.wrong > 0 {
		t.Logf("%s, seed %d, record %d of rank %d: %v", kind, seed, a.index, a.from, errs)
	}
	closeProcesses(t, p)
}
