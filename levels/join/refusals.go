package join

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	refusalSources = 64          // sources told apart
	refusalPause   = time.Minute // between two lines on one source
)

// refusals logs refused connections: one line per source and minute, and a
// bounded number of sources: an attacker can't fill a disk.
type refusals struct {
	log *slog.Logger

	mu   sync.Mutex
	seen map[string]time.Time
}

func (c *refusals) add(source string, err error) {
	now := time.Now()
	c.mu.Lock()
	if c.seen == nil {
		c.seen = map[string]time.Time{}
	}
	if _, known := c.seen[source]; !known && len(c.seen) >= refusalSources {
		source = "other sources"
	}
	last, known := c.seen[source]
	quiet := known && now.Sub(last) < refusalPause
	if !quiet {
		c.seen[source] = now
	}
	c.mu.Unlock()
	if !quiet {
		c.log.LogAttrs(context.Background(), slog.LevelWarn, "connection refused",
			slog.String("source", source), slog.Any("error", err))
	}
}
