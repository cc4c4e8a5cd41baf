package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
)

const (
	reachTime     = 2 * time.Second // for one connection
	reachAll      = 4 * time.Second // for all of a rank's
	reachAtOnce   = 16              // connections made by a rank at a time
	mostUnreached = 16              // described by a rank
)

// route is how some ranks are reached.
type route struct {
	Why     string        `json:"why"`
	Ranks   int           `json:"ranks"`
	Example string        `json:"example"` // r0>r5 at 10.0.0.2:4711 from 10.0.0.1
	Longest time.Duration `json:"longest_ns"`
}

// failure is a rank out of reach.
type failure struct {
	Rank int    `json:"rank"`
	Why  string `json:"why"`
}

// narrow is a rank that only small packets come to.
type narrow struct {
	Rank int `json:"rank"`
	Size int `json:"packet_bytes"` // of those that don't
}

// reach dials every other rank, the next higher ones first.
func (f *facts) reach(ctx context.Context, job *join.Job) {
	ctx, stop := context.WithTimeout(ctx, reachAll)
	defer stop()
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(reachAtOnce)
	for i := 1; i < job.Size; i++ {
		peer := levels.Rank((int(job.Rank) + i) % job.Size)
		all.Go(func() error {
			if ctx.Err() != nil {
				mu.Lock()
				defer mu.Unlock()
				f.Untried++
				return nil
			}
			began := time.Now()
			why, example, err := try(ctx, job, peer)
			mu.Lock()
			defer mu.Unlock()
			lost, isNarrow := errors.AsType[*join.PacketError](err)
			switch {
			case isNarrow:
				f.Narrow = append(f.Narrow, narrow{int(peer), lost.Size})
			case err == nil:
				f.addRoute(route{why, 1, example, time.Since(began)})
			case len(f.Unreached) < mostUnreached:
				f.Unreached = append(f.Unreached, failure{int(peer), reason(err)})
			default: // the pairs count as untried
				f.Untried++
			}
			return nil
		})
	}
	_ = all.Wait() // has no errors
}

// reason leaves out the two ranks of an error.
func reason(err error) string {
	if r, ok := errors.AsType[*join.ReachError](err); ok {
		return fmt.Sprintf("at %s: %v", strings.Join(r.At, ", "), r.Err)
	}
	return err.Error()
}

// try makes a connection, and sends small and large messages there.
func try(ctx context.Context, job *join.Job, peer levels.Rank) (why, example string, err error) {
	ctx, stop := context.WithTimeout(ctx, reachTime)
	defer stop()
	at, from, err := job.Probe(ctx, peer)
	if err != nil {
		return "", "", err
	}
	why = "unknown"
	routes, _ := job.Routes(peer)
	for i, r := range routes {
		if r.Address != at.String() {
			continue
		}
		why = r.Why
		if i > 0 {
			why += fmt.Sprintf(", after %s did not answer", routes[0].Address)
		}
	}
	return why, fmt.Sprintf("r%d>r%d at %s from %s", job.Rank, peer, at, from.Addr()), nil
}

// addRoute counts reached ranks.
func (f *facts) addRoute(more route) {
	for i := range f.Routes {
		if r := &f.Routes[i]; r.Why == more.Why {
			r.Ranks += more.Ranks
			r.Longest = max(r.Longest, more.Longest)
			return
		}
	}
	f.Routes = append(f.Routes, more)
}
