// Package ports is the range of TCP ports for the listeners of a job: hosts behind firewalls
// and containers let only some in.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tierflow/tierflow/levels/join/env"
)

// Range is the ports First to Last. The zero value is any port: the system chooses.
type Range struct{ First, Last uint16 }

// Parse reads FIRST-LAST or one port. The empty text is the zero value.
func Parse(text string) (Range, error) {
	if text == "" {
		return Range{}, nil
	}
	first, last, several := strings.Cut(text, "-")
	if !several {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 16)
	to, err2 := strconv.ParseUint(last, 10, 16)
	if err != nil || err2 != nil || from < 1 || from > to {
		return Range{}, fmt.Errorf("ports %q; allowed are FIRST-LAST and one port, 1 to 65535, such as 40000-40099", text)
	}
	return Range{uint16(from), uint16(to)}, nil
}

// Len is the number of ports; 0: any.
func (r Range) Len() int {
	if r == (Range{}) {
		return 0
	}
	return int(r.Last) - int(r.First) + 1
}

// String is the text that [Parse] reads.
func (r Range) String() string {
	switch r.Len() {
	case 0:
		return ""
	case 1:
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// anyTries bounds the attempts at ports of the system's choice.
const anyTries = 16

// Try calls open with one port after another until it succeeds, or fails for another reason than that the
// port is taken. Port 0 is the system's choice. The first one is drawn: a process in the place of a
// dead one should not be found at its port, nor two jobs be in each other's way. Ports to avoid come last.
func (r Range) Try(avoid []uint16, open func(port uint16) error) error {
	n := r.Len()
	if n == 0 {
		var err error
		for range anyTries {
			if err = open(0); !errors.Is(err, syscall.EADDRINUSE) {
				return err
			}
		}
		return err
	}
	var last error
	start := rand.IntN(n)
	for _, avoided := range []bool{false, true} {
		for i := range n {
			port := r.First + uint16((start+i)%n)
			if slices.Contains(avoid, port) != avoided {
				continue
			}
			if last = open(port); !errors.Is(last, syscall.EADDRINUSE) {
				return last
			}
		}
	}
	return fmt.Errorf("%s=%s: no port is free of %d: on each host every rank needs one, and rank 0 another to be met at: %w", env.Ports, r, n, last)
}

// Listen opens a TCP listener at a port of the range. network and host are net.Listen's.
func (r Range) Listen(network, host string) (l net.Listener, err error) {
	err = r.Try(nil, func(port uint16) (err error) {
		l, err = net.Listen(network, net.JoinHostPort(host, strconv.Itoa(int(port))))
		return err
	})
	return l, err
}

// CheckRanks complains about a range with fewer ports than a host needs for so many ranks, rank 0 maybe among
// them. In a job that lets others in ranks listen for the next communicator before the last one is closed, and any of them may
// become rank 0.
func (r Range) CheckRanks(ranks int, root, letsIn bool) error {
	need, more := ranks, ""
	if root || letsIn {
		need, more = need+1, ", and rank 0 another to be met at"
	}
	if letsIn {
		need, more = 2*need, more+", all twice with restarts"
	}
	if r.Len() == 0 || r.Len() >= need {
		return nil
	}
	return fmt.Errorf("%s=%s has fewer ports than the %d needed here: each of %d ranks needs one%s", env.Ports, r, need, ranks, more)
}
