package launcher

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// manager is a conversation with a process manager. No method is called beside another
// one. Calls end soon after the connection's deadline.
type manager interface {
	// greet begins the conversation; the first call.
	greet() error
	// spread gives all ranks the text of rank 0, under a new key.
	spread(key, text string) (string, error)
	// bye ends the conversation; the last call.
	bye() error
}

// session is this process's conversation with its process manager. There is one for a
// process, however many jobs it joins one after the other.
//
//	new ─greet─▶ open ─spread*─▶ open ─bye─▶ left
//	   any failure after connecting ─▶ broken
type session struct {
	label string // of the launcher, in front of errors
	dial  func(ctx context.Context) (net.Conn, error)
	speak func(net.Conn) manager

	mu      sync.Mutex
	conn    net.Conn
	manager manager
	shares  int   // calls of share so far
	left    bool  // bye was said
	broken  error // why nothing can be asked any more
}

var errHasLeft = errors.New("this process told its launcher at Close that it has ended; one job for each process")

// sessions holds the conversations of this process by key, see sessionFor.
var sessions struct {
	mu sync.Mutex
	by map[string]*session
}

// sessionFor returns the session named by key; on the first call that is fresh. key has the variables that lead to the manager.
func sessionFor(key string, fresh *session) *session {
	sessions.mu.Lock()
	defer sessions.mu.Unlock()
	if sessions.by == nil {
		sessions.by = map[string]*session{}
	}
	if sessions.by[key] == nil {
		sessions.by[key] = fresh
	}
	return sessions.by[key]
}

// share is Launcher.Share.
func (s *session) share(ctx context.Context, text string) (string, error) {
	if len(text) > MaxText || strings.ContainsAny(text, " \t\r\n\x00") {
		return "", fmt.Errorf("%s: a text of %d bytes; allowed are %d without blanks", s.label, len(text), MaxText)
	}
	var got string
	err := s.during(ctx, func() (err error) {
		key := fmt.Sprintf("tierflow-%d", s.shares)
		s.shares++
		got, err = s.manager.spread(key, text)
		return err
	})
	return got, err
}

// leave is Launcher.Leave.
func (s *session) leave(ctx context.Context) error {
	s.mu.Lock()
	untold := s.manager == nil || s.broken != nil || s.left
	s.mu.Unlock()
	if untold {
		return nil
	}
	return s.during(ctx, func() error {
		s.left = true
		defer s.conn.Close()
		return s.manager.bye()
	})
}

// during runs do on the open conversation, until ctx ends.
func (s *session) during(ctx context.Context, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	err := s.open(ctx)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { s.conn.SetDeadline(time.Unix(1, 0)) })
		if s.manager == nil {
			m := s.speak(s.conn)
			if err = m.greet(); err == nil {
				s.manager = m
			}
		}
		if err == nil {
			err = do()
		}
		stop()
		if err != nil {
			s.broken = err // an answer may still be on its way
			s.conn.Close()
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.label, explainTimeout(ctx, err, time.Since(began)))
}

// open connects if that has not succeeded before.
func (s *session) open(ctx context.Context) (err error) {
	switch {
	case s.left:
		return errHasLeft
	case s.broken != nil:
		return fmt.Errorf("the conversation has failed before: %w", s.broken)
	case s.conn != nil:
		return nil
	}
	s.conn, err = s.dial(ctx)
	return err
}

// waitError is an unfinished wait for all ranks.
type waitError struct {
	what string
	size int // 0: unknown
	err  error
}

func (e *waitError) Error() string { return e.err.Error() }

func (e *waitError) Unwrap() error { return e.err }

// explainTimeout explains an error after the end of ctx.
func explainTimeout(ctx context.Context, err error, took time.Duration) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	w, ok := errors.AsType[*waitError](err)
	if !ok || !errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	all := "all ranks"
	if w.size > 0 {
		all = fmt.Sprintf("all %d ranks", w.size)
	}
	return fmt.Errorf("%s: not %s came in %.3g s (the launcher does not say which): %w",
		w.what, all, took.Round(100*time.Millisecond).Seconds(), cause)
}
