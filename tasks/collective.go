package tasks

import (
	"fmt"
	"strings"
)

// Collective names an operation: of a whole communicator in a [Request], of
// one group on one segment in a [Task]. The zero value is invalid.
type Collective uint8

// The collectives.
const (
	_ Collective = iota
	Bcast
	Reduce
	Allreduce
	Allgather
	Gather
	Scatter
	ReduceScatter
	Barrier
	maxCollective
)

// collectives holds each one's name and its suffix in a task's name: the b of
// ib. A collective without a suffix is never a task.
var collectives = [maxCollective]struct{ name, suffix string }{
	Bcast:         {"bcast", "b"},
	Reduce:        {"reduce", "r"},
	Allreduce:     {"allreduce", "ar"},
	Allgather:     {"allgather", "ag"},
	Gather:        {"gather", "g"},
	Scatter:       {"scatter", "s"},
	ReduceScatter: {"reducescatter", "rs"},
	Barrier:       {"barrier", ""},
}

// Requestable lists the collectives that [Expand] can expand.
func Requestable() []Collective {
	return []Collective{Bcast, Reduce, Allreduce, Allgather, Gather, Scatter, ReduceScatter, Barrier}
}

// Collectives lists all of them, those that are only tasks too.
func Collectives() []Collective {
	all := make([]Collective, 0, maxCollective-1)
	for c := Collective(1); c < maxCollective; c++ {
		all = append(all, c)
	}
	return all
}

// String is the collective's lower-case name.
func (c Collective) String() string {
	if c == 0 || c >= maxCollective {
		return fmt.Sprintf("Collective(%d)", uint8(c))
	}
	return collectives[c].name
}

// ParseCollective finds a requestable collective by its name.
func ParseCollective(s string) (Collective, error) {
	names := make([]string, 0, maxCollective)
	for _, c := range Requestable() {
		if c.String() == s {
			return c, nil
		}
		names = append(names, c.String())
	}
	return 0, fmt.Errorf("unknown collective %q; known are %s", s, strings.Join(names, ", "))
}

// Kind is what tasks of one level and one operation have in common: the ib of
// ib#3.
type Kind struct {
	Symbol byte // the level's
	Op     Collective
}

// String is the paper's name of the kind: sr, ir, ib, sb.
func (k Kind) String() string {
	if k.Op == 0 || k.Op >= maxCollective {
		return string(k.Symbol) + "?"
	}
	return string(k.Symbol) + collectives[k.Op].suffix
}

// parseKind is the inverse of [Kind.String].
func parseKind(s string) (Kind, bool) {
	for c := Collective(1); c < maxCollective; c++ {
		if suffix := collectives[c].suffix; suffix != "" && len(s) == 1+len(suffix) && isLetter(s[0]) && s[1:] == suffix {
			return Kind{s[0], c}, true
		}
	}
	return Kind{}, false
}
