//go:build linux

package tcp

import (
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
)

// Lookout is when a rank last looked at all its links, while a payload is on its way in. The
// links of a rank share one; the zero value is ready to use. The engine's lock guards it.
type Lookout struct {
	midway int // connections inside a frame
	last   time.Time
}

// Note notes that the rank has looked at its links, or has woken up and will.
func (o *Lookout) Note() {
	if o.midway > 0 {
		o.last = time.Now()
	}
}

const (
	// leastPaced is how much must come after a frame has begun for its pace to count, bytes: a
	// network lets short bursts through faster than it is. mostPaced ends a measurement.
	leastPaced = 16 << 10
	mostPaced  = 256 << 10
	// mostBlind is how long the rank may have been busy elsewhere while bytes came.
	mostBlind = time.Millisecond
	// pacesKept are the last paces of a link. fewestPaces tell something of it.
	pacesKept   = 16
	fewestPaces = 4
)

// arrival is how the rest of frames comes after their beginning. The sender
// has begun them, so the rank waits for the network.
type arrival struct {
	paces [pacesKept]int64 // bytes/s, the last ones
	count int              // of paces since the link was made
	long  time.Duration    // waited by this rank for the rest of frames
}

// waiting is one wait for the rest of frames from a connection.
type waiting struct {
	since time.Time // zero: there is none
	bytes int       // come since
}

// note takes in a read of n bytes; midway: it ends inside a frame.
func (a *arrival) note(o *Lookout, w *waiting, n int, midway bool) {
	waits := !w.since.IsZero()
	if o == nil || waits == midway && n == 0 || !waits && !midway {
		return
	}
	now := time.Now()
	if waits {
		w.bytes += n
		seen := now.Sub(o.last) <= mostBlind
		if seen && midway && w.bytes < mostPaced {
			return
		}
		if seen {
			a.keep(w.bytes, now.Sub(w.since))
		}
		o.midway--
		*w = waiting{}
	}
	if midway {
		o.midway++
		w.since = now
	}
}

func (a *arrival) keep(bytes int, long time.Duration) {
	a.long += long
	if bytes >= leastPaced && long > 0 {
		a.paces[a.count%pacesKept] = int64(float64(bytes) / long.Seconds())
		a.count++
	}
}

// pace says how fast bytes come. Best is the second of the last ones: one may be wrong.
func (a *arrival) pace() wire.Pace {
	p := wire.Pace{Waited: a.long}
	if a.count >= fewestPaces {
		all := slices.Clone(a.paces[:min(a.count, pacesKept)])
		slices.Sort(all)
		p.Best, p.Median = all[len(all)-2], all[len(all)/2]
	}
	return p
}
