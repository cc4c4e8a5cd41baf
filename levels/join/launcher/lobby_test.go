package launcher

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/levels/join/env"
)

// desk is the launcher's end of a lobby.
type desk struct {
	*json.Encoder
	*bufio.Scanner
}

func newDesk(t *testing.T, newcomer bool) (*Lobby, *desk) {
	t.Helper()
	theirs, ours := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	return NewLobby(theirs, 3, newcomer), &desk{json.NewEncoder(ours), bufio.NewScanner(ours)}
}

// tell says something to the rank.
func (d *desk) tell(t *testing.T, n LobbyNote) {
	t.Helper()
	if err := d.Encode(n); err != nil {
		t.Fatal(err)
	}
}

// hear wants the rank to say something.
func (d *desk) hear(t *testing.T, want LobbyNote) {
	t.Helper()
	var got LobbyNote
	if !d.Scan() || json.Unmarshal(d.Bytes(), &got) != nil {
		t.Fatalf("heard %q, %v", d.Bytes(), d.Err())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +heard:\n%s", diff)
	}
}

func TestLobbyAwait(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l, d := newDesk(t, true)
	if !l.Enter() || l.Slot() != 3 {
		t.Errorf("a newcomer need not wait, number %d", l.Slot())
	}
	want := Place{Slot: 3, Rank: 7, Size: 8, Text: "tfi1.x"}
	for range 2 { // one that could not be let in waits again
		go func() {
			d.hear(t, LobbyNote{Wait: true})
			d.tell(t, LobbyNote{Waiting: &[]Newcomer{{3, []int{2, 3}}}})
			d.tell(t, LobbyNote{Invite: []Place{want}})
		}()
		if got, err := l.Await(t.Context()); got != want || err != nil {
			t.Errorf("place %v, %v; want %v", got, err, want)
		}
	}
	var asked sync.WaitGroup
	asked.Go(func() { d.Scan() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := l.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a place: %v", err)
	}
	asked.Wait()
	go func() {
		d.Scan()
		d.tell(t, LobbyNote{Over: true})
	}()
	if _, err := l.Await(t.Context()); !errors.Is(err, ErrOver) {
		t.Errorf("after the end: %v", err)
	}
	l.conn.Close()
}

// Who joins as one of the first gives up soon after another process has joined, and not before.
func TestLobbyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, d := newDesk(t, false)
		ctx, stop := l.InTime(t.Context())
		clocktest.Pass(time.Hour)
		if ctx.Err() != nil {
			t.Errorf("gave up before anybody had joined: %v", context.Cause(ctx))
		}
		began := time.Now()
		d.tell(t, LobbyNote{Runs: true})
		<-ctx.Done()
		if took := time.Since(began); !errors.Is(context.Cause(ctx), ErrRuns) || took != lateTime {
			t.Errorf("gave up after %v: %v", took, context.Cause(ctx))
		}
		stop()
		ctx, stop = l.InTime(t.Context())
		stop() // joined in time
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("joined in time: %v", context.Cause(ctx))
		}
		l.conn.Close()
		l.reading.Wait()
	})
}

func TestLobbyOfMember(t *testing.T) {
	l, d := newDesk(t, false)
	if l.Enter() {
		t.Error("one of the first must wait")
	}
	if !l.Enter() {
		t.Error("one that comes back must not wait")
	}
	d.tell(t, LobbyNote{Waiting: &[]Newcomer{{5, []int{4, 5}}, {2, []int{2}}}})
	clocktest.Until(t, "nobody waits", func() bool { return len(l.Waiting()) == 2 && l.Waiting()[0].Slot == 5 })
	go func() { _ = l.Invite([]Place{{Slot: 5, Rank: 1, Size: 2, Text: "x"}}) }()
	d.hear(t, LobbyNote{Invite: []Place{{Slot: 5, Rank: 1, Size: 2, Text: "x"}}})

	ctx, leave := l.Follow(t.Context(), []int{5, 6})
	defer leave()
	other, leaveOther := l.Follow(t.Context(), []int{4})
	defer leaveOther()
	six := 6
	d.tell(t, LobbyNote{Ended: &six})
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Error("the end of a process is not heard of")
	}
	if other.Err() != nil {
		t.Errorf("the end of another process: %v", context.Cause(other))
	}
	l.conn.Close() // without a launcher nobody is waited for
	clocktest.Until(t, "somebody waits", func() bool { return l.Waiting() == nil })
	if _, err := l.Await(t.Context()); err == nil {
		t.Error("a place without a launcher")
	}
}

// A socket that isn't one, or is not open, is no lobby.
func TestOpenLobby(t *testing.T) {
	for _, fd := range []string{"", "1", "999", "x"} {
		v := NewVars(func(name string) string {
			return map[string]string{env.LobbyFD: fd, envRank: "0"}[name]
		})
		if l := OpenLobby(v); l != nil {
			t.Errorf("descriptor %q is a lobby", fd)
		}
	}
}
