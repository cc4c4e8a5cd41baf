package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// staggerTime is how long an attempt has the field for itself before the next address
// is tried beside it.
const staggerTime = 100 * time.Millisecond

// target is one address to dial, and the local one to dial from if valid.
type target struct {
	network string // tcp, unix
	address string
	source  netip.Addr
	why     string // this address
}

func (t target) connect(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{FallbackDelay: staggerTime}
	if t.source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(t.source, 0))
	}
	c, err := d.DialContext(ctx, t.network, t.address)
	if err != nil {
		return nil, err
	}
	if err := checkOwner(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// credentials prove a dialer, and seal its connection.
type credentials struct {
	key   []byte
	guard *guard
}

// greetAt connects and authenticates, up to but without the confirmation.
func (t target) greetAt(ctx context.Context, by credentials, g greeting) (net.Conn, error) {
	c, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	return t.greetOn(ctx, c, by, g)
}

// greetOn authenticates a connection just made.
func (t target) greetOn(ctx context.Context, c net.Conn, by credentials, g greeting) (net.Conn, error) {
	guarded := c
	if err := within(ctx, c, func() (err error) {
		if guarded, err = by.guard.dial(ctx, c, g.from); err == nil {
			err = by.guard.addRefusal(greet(guarded, by.key, g), c)
		}
		return explainSilence(c, err)
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", t.address, err)
	}
	return guarded, nil
}

// within runs do, a function on c, under ctx. On failure c is closed.
func within(ctx context.Context, c net.Conn, do func() error) error {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	err := do()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
	return err
}

// persist is greetAt, repeated after failures if again says that they may pass. When ctx ends
// the error is that of the last attempt with lost packets. Without one it is that of the last with enough time.
func (t target) persist(ctx context.Context, by credentials, hello func() greeting, again func(error) bool) (net.Conn, error) {
	var why error
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := t.greetAt(ctx, by, hello())
		if err == nil || !again(err) {
			return c, err
		}
		if why == nil || isLoss(err) || !isLoss(why) && ctx.Err() == nil && !timedOut(err) {
			why = err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), why)
		}
	}
}

// errUnconfirmed: the other side did not wait for the confirmation. On a very busy
// machine the handshake may have taken too long.
var errUnconfirmed = errors.New("dropped before it was confirmed")

// race tries the targets in order, each beside the unanswered ones before
// it, and returns the first authenticated connection, confirmed. It
// returns when all attempts have ended.
func race(ctx context.Context, targets []target, by credentials, hello func() greeting, again func(error) bool) (net.Conn, error) {
	for {
		c, err := raceOnce(ctx, targets, by, hello, again)
		if !errors.Is(err, errUnconfirmed) || ctx.Err() != nil {
			return c, err
		}
	}
}

// raceOnce is race, but a connection dropped in the last moment is an error.
func raceOnce(ctx context.Context, targets []target, by credentials, hello func() greeting, again func(error) bool) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	pause := time.NewTimer(0)
	defer pause.Stop()
	var winner net.Conn
	var errs []error
	for next, running := 0, 0; next < len(targets) || running > 0; {
		more := pause.C
		if next == len(targets) {
			more = nil
		}
		select {
		case <-more:
			t := targets[next]
			next++
			running++
			go func() { // ends with its result, received below
				c, err := t.persist(ctx, by, hello, again)
				results <- result{c, err}
			}()
			pause.Reset(staggerTime)
		case r := <-results:
			running--
			switch {
			case r.err != nil:
				errs = append(errs, r.err)
				pause.Reset(0)
			case winner == nil:
				winner = r.conn
				next = len(targets)
				cancel()
			default:
				r.conn.Close()
			}
		}
	}
	if winner == nil {
		return nil, reasons(errs)
	}
	if err := confirm(winner); err != nil {
		winner.Close()
		if isDropped(err) {
			err = fmt.Errorf("%w: %w", errUnconfirmed, err)
		}
		return nil, err
	}
	return winner, nil
}
