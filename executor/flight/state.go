package flight

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Doing is the activity of a rank at one moment. The zero value is invalid.
type Doing uint8

// The activities.
const (
	_         Doing = iota
	Outside         // it is in no call
	Inside          // it is in the calls of [State.Open]
	Computing       // it has been in a caller's operation for a tenth of a second or more
	Silent          // it has not answered
	Stopped         // its process is stopped, by SIGSTOP or a debugger; of calls its last record is known
	Gone            // its process has ended
	Left            // it has closed its communicator of all ranks; it may wait for others to
	maxDoing
)

var doingNames = [maxDoing]string{Outside: "in no call", Inside: "in a call", Computing: "in an operation of its program", Silent: "silent", Stopped: "stopped", Gone: "dead", Left: "closed"}

// String names it.
func (d Doing) String() string {
	if d == 0 || d >= maxDoing {
		return fmt.Sprintf("doing(%d)", uint8(d))
	}
	return doingNames[d]
}

// MarshalText lets JSON have the name.
func (d Doing) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a name.
func (d *Doing) UnmarshalText(text []byte) error {
	for k := range maxDoing {
		if k.String() == string(text) {
			*d = k
			return nil
		}
	}
	return fmt.Errorf("no rank is doing %q", text)
}

// State is one rank at one moment: a plain value, made to travel as JSON.
type State struct {
	Rank  int    `json:"rank"`           // of the world
	Doing Doing  `json:"doing"`          //
	At    string `json:"at,omitempty"`   // place of the program's goroutine: main.load load.go:88 (sleep); empty: unknown
	Last  string `json:"last,omitempty"` // the last call to end; empty: none, or unknown
	// Since is at most how long ago that call ended; 0: unknown. Calls in a row share readings
	// of the clock. Without a call tierflow ps gives the time since the rank has entered the job.
	Since  time.Duration `json:"since_ns,omitempty"`
	Votes  string        `json:"votes,omitempty"`  // the agreement that its program waits for; empty: none
	Open   []Open        `json:"open,omitempty"`   // calls under way
	Called []Called      `json:"called,omitempty"` // how far it is on each of its communicators
	PID    int           `json:"pid,omitempty"`    // of its process; 0: unknown
	Failed *Failed       `json:"failed,omitempty"` // the first failure it has met; nil: none
	// Elsewhere is the call of another library, such as MPI, that its program is in; nil: none, or unknown.
	Elsewhere *Elsewhere `json:"elsewhere,omitempty"`
	// Near are stopped or dead ranks of its node: they can't answer for themselves.
	Near []State `json:"near,omitempty"`
}

// Failed is a failure of a communicator.
type Failed struct {
	Rank  int    `json:"rank"`            // of the world: it began there
	Text  string `json:"text"`            // the error
	Kind  string `json:"kind,omitempty"`  // a class of package verdict; empty: none of them
	Ranks []int  `json:"ranks,omitempty"` // of the world, to blame; empty: Rank
	// Ago is how long before its state the rank met it; 0: in the same moment, or unknown.
	Ago time.Duration `json:"ago_ns,omitempty"`
}

// Elsewhere is a call of another library.
type Elsewhere struct {
	Call string        `json:"call"`             // MPI_Recv (passed on)
	For  time.Duration `json:"for_ns,omitempty"` // it has lasted for so long; 0: for moments
}

// MaxOpen bounds the calls in [State.Open].
const MaxOpen = 16

// Open is a collective, or a send or receive, under way.
type Open struct {
	Comm     uint64        `json:"comm"`               // communicator's number
	Seq      uint32        `json:"seq,omitempty"`      // of a collective: how many were called before it
	What     string        `json:"what"`               // allreduce 1024 f32 sum, or receive from rank 1, tag 5
	Waits    string        `json:"waits,omitempty"`    // a collective's open steps
	Peers    []int         `json:"peers,omitempty"`    // of the world: those that have not come and hold it up; empty: it moves
	For      time.Duration `json:"for_ns,omitempty"`   // it has stood still for so long; 0: less than a tenth of a second
	Transfer bool          `json:"transfer,omitempty"` // a send or receive
	Any      bool          `json:"any,omitempty"`      // a receive from any rank: one of Peers is enough; too many: they are not listed
	Awaited  bool          `json:"awaited,omitempty"`  // the program waits for it; else it was only started
	// Operating: an operation of the rank's own program has kept it for a tenth of a second or more.
	Operating bool `json:"operating,omitempty"`
}

// Called is how many collectives a rank has called on a communicator.
type Called struct {
	Comm  uint64 `json:"comm"`
	Calls uint32 `json:"calls"`
	Heard bool   `json:"heard,omitempty"` // its program knows that the communicator is broken
}

// HasCome reports whether the rank has called a collective; known is false if nobody can tell.
func (s *State) HasCome(comm uint64, seq uint32) (come, known bool) {
	if s.Doing != Outside && s.Doing != Inside && s.Doing != Computing && s.Doing != Left {
		return false, false
	}
	for _, c := range s.Called {
		if c.Comm == comm {
			return int32(seq-c.Calls) < 0, true
		}
	}
	return false, s.Doing == Outside || s.Doing == Inside // nothing is kept of a communicator that it has left
}

// HasHeard reports whether the rank's program knows that a communicator is broken: a call on it has failed.
func (s *State) HasHeard(comm uint64) bool {
	return slices.ContainsFunc(s.Called, func(c Called) bool { return c.Comm == comm && c.Heard })
}

// IsElsewhere reports whether the rank is in a call of another library, and in none of this one.
func (s *State) IsElsewhere() bool { return s.Doing == Outside && s.Elsewhere != nil }

// String tells the calls of the rank, for how long it stands in them, and its place: in receive from rank 1, tag 5,
// for 2.0 s, at main.load load.go:88.
func (s *State) String() string {
	var b strings.Builder
	switch {
	case s.Doing == Inside, s.Doing >= Silent && len(s.Open) > 0:
		if s.Doing >= Silent {
			b.WriteString(s.Doing.String() + " ")
		}
		var calls []string
		for i := range s.Open {
			if s.Open[i].Awaited {
				calls = append(calls, s.Open[i].String())
			}
		}
		if more := len(calls) - maxShown; more > 0 {
			calls = append(calls[:maxShown], fmt.Sprintf("%d more", more))
		}
		b.WriteString(strings.Join(calls, " and "))
	case s.Doing == Outside && s.Votes != "":
		b.WriteString("in " + s.Votes)
	case s.IsElsewhere():
		fmt.Fprintf(&b, "in %s", s.Elsewhere.Call)
		if s.Elsewhere.For > 0 {
			b.WriteString(", for " + tenths(s.Elsewhere.For))
		}
	default:
		b.WriteString(s.Doing.String())
		if s.Doing >= Silent && s.Doing != Left && s.Last != "" {
			b.WriteString(" in no call")
		}
	}
	if idle := s.Doing == Outside && s.Elsewhere == nil || s.Doing >= Silent && len(s.Open) == 0; idle && s.Last != "" {
		fmt.Fprintf(&b, " after %s", s.Last)
		if s.Since > 0 {
			fmt.Fprintf(&b, ", at most %s ago", tenths(s.Since))
		}
	}
	if s.At != "" {
		b.WriteString(", at " + s.At)
	}
	return b.String()
}

// maxShown bounds the open calls in the text of a state.
const maxShown = 4

// String tells the call and for how long it has stood still.
func (o *Open) String() string {
	text := "in " + o.What
	if !o.Transfer {
		text += fmt.Sprintf(" #%d", o.Seq)
	}
	if o.For > 0 {
		text += ", for " + tenths(o.For)
	}
	return text
}

func tenths(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
