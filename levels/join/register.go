package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// register is the other ranks' side: it finds rank 0, hands in the record and
// waits for a place in the tree. It tries again while rank 0 isn't there yet; a rank 0 that has
// sent an invitation was there, and has gone if nobody listens. The connection stays open, for
// the monitor.
func register(ctx context.Context, cfg *Config, guard *guard, self *Peer) (*place, net.Conn, error) {
	targets := cfg.targets
	if len(targets) == 0 {
		for _, a := range cfg.Rendezvous {
			targets = append(targets, target{network: "tcp", address: a})
		}
	}
	record, err := json.Marshal(self)
	if err != nil {
		return nil, nil, err
	}
	if len(record) > maxRecord {
		return nil, nil, fmt.Errorf("this rank's record has %d bytes; allowed are %d", len(record), maxRecord)
	}
	began := time.Now()
	for {
		p, c, err := registerOnce(ctx, cfg, guard, targets, record)
		var failed *JoinError
		var unanswered *waitError
		switch {
		case err == nil:
			return p, c, nil
		case errors.As(err, &failed):
			return nil, nil, err
		case final(err):
			return nil, nil, &PeerError{0, fmt.Errorf("rank %d can't join at its rendezvous: %w", cfg.Rank, err)}
		case cfg.open && isRefused(err):
			return nil, nil, &PeerError{0, fmt.Errorf("it has closed the rendezvous that it invited rank %d to: %w", cfg.Rank, err)}
		case ctx.Err() != nil && errors.As(err, &unanswered) && unanswered.missing != nil:
			return nil, nil, fmt.Errorf("rank %d gave up joining after %s: %w: %w",
				cfg.Rank, roundText(time.Since(began)), context.Cause(ctx), unanswered.missing)
		case ctx.Err() != nil:
			return nil, nil, &PeerError{0, fmt.Errorf("rank %d gave up joining after %s: %w",
				cfg.Rank, roundText(time.Since(began)), err)}
		}
		select { // rank 0 ended an earlier attempt of its own
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// final: no later attempt at the rendezvous can do better.
func final(err error) bool {
	return errors.Is(err, ErrSecret) || errors.Is(err, ErrVersion) || errors.Is(err, ErrTLS)
}

func registerOnce(ctx context.Context, cfg *Config, guard *guard, targets []target, record []byte) (*place, net.Conn, error) {
	hello := func() greeting { return newGreeting(purposeRendezvous, cfg.Rank, 0) }
	again := func(err error) bool {
		return !final(err) && !(cfg.open && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errOtherRank)))
	}
	c, err := race(ctx, targets, credentials{rendezvousKey(cfg.Secret), guard}, hello, again)
	if err != nil {
		return nil, nil, err
	}
	var p *place
	err = within(ctx, c, func() (err error) {
		if _, err = c.Write(frame{kind: frameRecord, from: cfg.Rank, payload: record}.encode()); err == nil {
			p, err = awaitPlace(c, cfg.Rank, cfg.Size)
		}
		err = explainSilence(c, err)
		if err != nil && ctx.Err() != nil { // gave up, and is not at fault
			deliver(c, frame{kind: frameGoodbye, from: cfg.Rank}.encode(), time.Now().Add(farewellTime))
		}
		return err
	})
	if err != nil {
		c.Close()
	}
	return p, c, err
}

// waitError is the end of a connection before the answer.
type waitError struct {
	missing *JoinError // the ranks missing by rank 0's last word; nil: there was none
	err     error
}

func (e *waitError) Error() string {
	if e.missing == nil {
		return fmt.Sprintf("rank 0 has not answered: %v", e.err)
	}
	return fmt.Sprintf("%v: %v", e.missing, e.err)
}

// Unwrap leaves out the missing ranks: they are no failure yet.
func (e *waitError) Unwrap() error { return e.err }

// awaitPlace reads until the outcome.
func awaitPlace(c net.Conn, self levels.Rank, size int) (*place, error) {
	var missing *JoinError
	for {
		f, err := readFrame(c, levels.MaxRanks, maxPlace(size))
		if err != nil {
			return nil, &waitError{missing, err}
		}
		switch f.kind {
		case frameWaiting:
			missing, _ = errors.AsType[*JoinError](parseFailure(&f))
		case framePlace:
			return parsePlace(f.payload, self, size)
		case frameFailure:
			return nil, parseFailure(&f)
		default:
			return nil, fmt.Errorf("frame of kind %d at the rendezvous", f.kind)
		}
	}
}
