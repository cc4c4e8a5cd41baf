package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
)

// Tags of letters: mixed ones are received from any rank or from one; in brief, small ones
// the receives are cancelled now and then.
const (
	mixed = iota
	brief
	letterTags
)

// letter is a message from one rank to another one; number counts those with its tag between
// the two.
type letter struct{ from, to, tag, size, number int }

// letters are the same on all ranks.
func letters(seed uint64, ranks, n int) []letter {
	draw := rand.New(rand.NewPCG(seed, 7))
	counts := map[letter]int{}
	all := make([]letter, n)
	for i := range all {
		key := letter{from: draw.IntN(ranks), to: draw.IntN(ranks) * min(1, draw.IntN(3)), tag: draw.IntN(letterTags)}
		all[i] = key
		all[i].size = 2 + draw.IntN(200)
		if key.tag == mixed && draw.IntN(5) == 0 {
			all[i].size = 2 + draw.IntN(40_000)
		}
		all[i].number = counts[key]
		counts[key]++
	}
	return all
}

// text is what a letter says.
func (l letter) text() []int32 {
	buf := make([]int32, l.size)
	for i := range buf {
		buf[i] = int32(31*i + l.from + 1000*l.number)
	}
	return buf
}

// mailbox is what a rank has still to get.
type mailbox struct {
	want map[[2]int][]letter // by rank and tag, in order
	left [letterTags]int
}

// take checks a letter that has come.
func (m *mailbox) take(from, tag int, got []int32) error {
	k := [2]int{from, tag}
	if len(m.want[k]) == 0 {
		return fmt.Errorf("%d elements with tag %d from rank %d, which had sent all", len(got), tag, from)
	}
	l := m.want[k][0]
	if !slices.Equal(got, l.text()) {
		return fmt.Errorf("not letter %d of %d elements with tag %d from rank %d, but one of %d", l.number, l.size, tag, from, len(got))
	}
	m.want[k] = m.want[k][1:]
	m.left[tag]--
	return nil
}

// Ranks send each other letters of random sizes in random order; each arrives once, those
// of one rank in order, over all kinds of links. Receives that end with their context lose none.
func TestRecvAny(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			onBothKinds(t, 3, 2, nil, func(ctx context.Context, c *planner.Comm) error {
				return correspond(ctx, c, seed, letters(seed, c.Size(), 300))
			})
		})
	}
}

func correspond(ctx context.Context, c *planner.Comm, seed uint64, all []letter) error {
	box := &mailbox{want: map[[2]int][]letter{}}
	var sent []*planner.Transfer
	for _, l := range all {
		if l.to == c.Rank() {
			k := [2]int{l.from, l.tag}
			box.want[k] = append(box.want[k], l)
			box.left[l.tag]++
		}
	}
	wrote := make(chan error)
	go func() {
		var err error
		for _, l := range all {
			if l.from == c.Rank() && err == nil {
				var one *planner.Transfer
				if one, err = planner.StartSend(ctx, c, l.to, l.tag, l.text()); err == nil {
					sent = append(sent, one)
				}
			}
		}
		wrote <- err
	}()
	draw := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
	err := box.empty(ctx, c, draw)
	err = errors.Join(err, <-wrote)
	for _, one := range sent {
		_, waited := one.Wait(ctx)
		err = errors.Join(err, waited)
	}
	if err != nil {
		return fmt.Errorf("rank %d: %w", c.Rank(), err)
	}
	return nil
}

// empty receives all letters.
func (m *mailbox) empty(ctx context.Context, c *planner.Comm, draw *rand.Rand) error {
	for m.left[mixed]+m.left[brief] > 0 {
		var err error
		switch way := draw.IntN(4); {
		case m.left[brief] > 0 && way < 2:
			err = m.hurried(ctx, c, time.Duration(draw.IntN(30))*time.Microsecond)
		case m.left[mixed] > 0 && way == 2:
			err = m.several(ctx, c, min(m.left[mixed], 1+draw.IntN(5)))
		case m.left[mixed] > 0:
			err = m.known(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hurried receives a letter from any rank, or none.
func (m *mailbox) hurried(ctx context.Context, c *planner.Comm, within time.Duration) error {
	short, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	buf := make([]int32, 300)
	got, err := planner.RecvAny(short, c, brief, buf)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	if err != nil {
		return err
	}
	return m.take(got.Source, brief, buf[:got.Count])
}

// several posts receives from any rank; they get letters in this order.
func (m *mailbox) several(ctx context.Context, c *planner.Comm, n int) error {
	bufs, posted := make([][]int32, n), make([]*planner.Transfer, n)
	for i := range posted {
		bufs[i] = make([]int32, 50_000)
		var err error
		if posted[i], err = planner.StartRecvAny(ctx, c, mixed, bufs[i]); err != nil {
			return err
		}
	}
	for i, one := range posted {
		count, err := one.Wait(ctx)
		if err == nil {
			err = m.take(one.Peer(), mixed, bufs[i][:count])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// known receives from a rank that has a letter for this one.
func (m *mailbox) known(ctx context.Context, c *planner.Comm) error {
	buf := make([]int32, 50_000)
	for k, list := range m.want {
		if k[1] == mixed && len(list) > 0 {
			n, err := planner.Recv(ctx, c, k[0], mixed, buf)
			if err != nil {
				return err
			}
			return m.take(k[0], mixed, buf[:n])
		}
	}
	return nil
}

// A rank that fails is told to those who might have got something from it.
func TestRecvAnyFailure(t *testing.T) {
	onBothKinds(t, 2, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		part, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		defer part.Close()
		if c.Rank() == 2 {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errors.New("the disk is full"))
			if planner.Send(ctx, part, 0, 0, make([]int, 1)) == nil { // it breaks it
				return errors.New("no error under a context that has ended")
			}
			return nil
		}
		got, err := planner.RecvAny(ctx, part, 3, make([]int, 1))
		var peer *planner.PeerError
		if !errors.As(err, &peer) || peer.Rank != 2 || !strings.Contains(err.Error(), "the disk is full") {
			return fmt.Errorf("got %v, error %w", got, err)
		}
		return nil
	})
}

// Wrong arguments are errors that say what is allowed, and break nothing.
func TestRecvAnyArguments(t *testing.T) {
	var noContext context.Context
	err := planner.Run(t.Context(), "2", nil, func(ctx context.Context, c *planner.Comm) error {
		for want, call := range map[string]func() error{
			"receive from any rank: tag -1 is not between 0 and": func() error { return second(planner.RecvAny(ctx, c, -1, []int{0})) },
			"receive from any rank: type string":                 func() error { return second(planner.RecvAny(ctx, c, 0, []string{""})) },
			"receive from any rank: the context is nil":          func() error { return second(planner.RecvAny(noContext, c, 0, []int{0})) },
			"receive from any rank: the communicator is nil":     func() error { return second(planner.StartRecvAny(ctx, nil, 0, []int{0})) },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("got error %w, want %q", err, want)
			}
		}
		if c.Rank() == 1 {
			return planner.Send(ctx, c, 0, 0, []byte{1, 2, 3})
		}
		if _, err := planner.RecvAny(ctx, c, 0, make([]int16, 2)); err == nil || !strings.Contains(err.Error(), "receive from rank 1, tag 0: message has elements of another type") {
			return fmt.Errorf("another type: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
