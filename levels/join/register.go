package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// register is the other ranks' side: it finds rank 0, hands in the record and
// waits for the table. It tries again while rank 0 isn't there yet. The connection
// stays open, for the vigil.
func register(ctx context.Context, cfg *Config, self *Peer) (*table, net.Conn, error) {
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
		t, c, err := registerOnce(ctx, cfg, targets, record)
		var failed *JoinError
		var unanswered *waitError
		switch {
		case err == nil:
			return t, c, nil
		case errors.As(err, &failed):
			return nil, nil, err
		case final(err):
			return nil, nil, &PeerError{0, fmt.Errorf("rank %d can't join at its rendezvous: %w", cfg.Rank, err)}
		case ctx.Err() != nil && errors.As(err, &unanswered) && unanswered.missing != nil:
			return nil, nil, fmt.Errorf("rank %d gave up joining after %s: %w: %w",
				cfg.Rank, roundText(time.Since(began)), context.Cause(ctx), unanswered.missing)
		case ctx.Err() != nil:
			return nil, nil, &PeerError{0, fmt.Errorf("rank %d gave up joining after %s: %w",
				cfg.Rank, roundText(time.Since(began)), err)}
		}
		time.Sleep(20 * time.Millisecond) // rank 0 ended an earlier attempt of its own
	}
}

// final: no later attempt at the rendezvous can do better.
func final(err error) bool { return errors.Is(err, ErrSecret) || errors.Is(err, ErrVersion) }

func registerOnce(ctx context.Context, cfg *Config, targets []target, record []byte) (*table, net.Conn, error) {
	hello := func() greeting { return newGreeting(purposeRendezvous, cfg.Rank, 0) }
	again := func(err error) bool { return !final(err) }
	c, err := race(ctx, targets, rendezvousKey(cfg.Secret), hello, again)
	if err != nil {
		return nil, nil, err
	}
	var t *table
	err = within(ctx, c, func() (err error) {
		f := frame{kind: frameRecord, from: cfg.Rank, payload: record}
		if _, err = c.Write(f.encode()); err == nil {
			t, err = awaitTable(c, cfg.Size)
		}
		if err != nil && ctx.Err() != nil { // gave up, and is not at fault
			f := frame{kind: frameGoodbye, from: cfg.Rank}
			deliver(c, f.encode(), time.Now().Add(lastWords))
		}
		return err
	})
	if err != nil {
		c.Close()
	}
	return t, c, err
}

// waitError is the end of a connection over which an answer was to come.
type waitError struct {
	missing *JoinError // whom rank 0 waited for, when it last said so; nil: it didn't
	err     error
}

func (e *waitError) Error() string {
	if e.missing == nil {
		return fmt.Sprintf("rank 0 has not answered: %v", e.err)
	}
	return fmt.Sprintf("%v: %v", e.missing, e.err)
}

// Unwrap leaves out who is missing: that is no failure yet.
func (e *waitError) Unwrap() error { return e.err }

// awaitTable reads until the outcome.
func awaitTable(c net.Conn, size int) (*table, error) {
	var missing *JoinError
	for {
		f, err := readFrame(c, levels.MaxRanks, max(size*maxRecord, MaxPayload))
		if err != nil {
			return nil, &waitError{missing, err}
		}
		switch f.kind {
		case frameWaiting:
			missing, _ = errors.AsType[*JoinError](parseFailure(&f))
		case frameTable:
			return parseTable(f.payload, size)
		case frameFailure:
			return nil, parseFailure(&f)
		default:
			return nil, fmt.Errorf("frame of kind %d at the rendezvous", f.kind)
		}
	}
}
