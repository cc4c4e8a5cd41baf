package join

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	refusalSources = 64          // sources told apart
	refusalPause   = time.Minute // between two lines on one source, and until its wrong secrets are forgotten
)

// refusals logs refused connections, one line per source and minute, and knows who tries secrets. The
// number of sources is bounded: an attacker can't fill a disk or the memory.
type refusals struct {
	log *slog.Logger

	mu   sync.Mutex
	seen map[string]*refusedSource
}

// refusedSource is what is known of a source.
type refusedSource struct {
	told  time.Time // the last line on it
	quiet int       // refused since
	wrong int       // secrets, the last of them at
	last  time.Time
}

// find returns what is known of a source, which shares it with others if there are too many.
// c.mu is held.
func (c *refusals) find(source string) (*refusedSource, string) {
	if c.seen == nil {
		c.seen = map[string]*refusedSource{}
	}
	if c.seen[source] == nil && len(c.seen) >= refusalSources {
		source = "other sources"
	}
	if c.seen[source] == nil {
		c.seen[source] = &refusedSource{}
	}
	return c.seen[source], source
}

// add logs a refusal.
func (c *refusals) add(source string, err error) {
	now := time.Now()
	c.mu.Lock()
	r, source := c.find(source)
	if errors.Is(err, ErrSecret) {
		r.wrong, r.last = r.recent(now)+1, now
	}
	quiet, before := !r.told.IsZero() && now.Sub(r.told) < refusalPause, r.quiet
	if r.quiet++; !quiet {
		r.told, r.quiet = now, 0
	}
	c.mu.Unlock()
	if quiet {
		return
	}
	attrs := []slog.Attr{slog.String("source", source), slog.Any("error", err)}
	if before > 0 {
		attrs = append(attrs, slog.Int("refused since the last line", before))
	}
	c.log.LogAttrs(context.Background(), slog.LevelWarn, "connection refused", attrs...)
}

// recent is how many wrong secrets count at a time.
func (r *refusedSource) recent(now time.Time) int {
	if now.Sub(r.last) > refusalPause {
		return 0
	}
	return r.wrong
}

// pause is how long the next handshake with a source waits before it begins.
func (c *refusals) pause(source string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) == 0 {
		return 0
	}
	r := c.seen[source]
	if r == nil && len(c.seen) >= refusalSources {
		r = c.seen["other sources"]
	}
	if r == nil {
		return 0
	}
	return pauseAfter(r.recent(time.Now()))
}

// Wrong secrets slow their source down: one by a moment, since a rank of a host may be told a wrong one while
// the others are not; many by so much that each slot is good for one guess a second.
const (
	wrongPause     = 20 * time.Millisecond
	mostWrongPause = time.Second
)

// pauseAfter is the pause after so many wrong secrets.
func pauseAfter(wrong int) time.Duration {
	return min(time.Duration(min(wrong, 1000))*wrongPause, mostWrongPause)
}
