package tasks

import (
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// A scan's segments go up the levels and come down again. On the way up a rank learns the sum of
// the ranks before it in its group, and the sum through itself. The last rank of a group has the
// group's total then, and takes it one level up. On the way down each group hears from its
// leader the sum of the groups before it, and puts it before its own. This is MPICH2's
// hierarchical scan (EuroPVM/MPI 2009, section 3.5) without its second step: there a group's
// total goes from its last rank to its first, the leader.
//
//	2x2 ranks            rank 0   rank 1     rank 2   rank 3
//	sx   inside          0        0,1        2        2,3
//	iex  of leaders                                   0,1 | 0,1,2,3
//	sp   inside                              0,1,2

// layScratch returns the bytes of this rank's vectors of a segment in scratch.
func (s *scan) layScratch() int64 { return int64(s.vectors()) * s.vector() }

// Scanned is the places of the two values of a scan's task on a rank. A value that it doesn't
// want has a length and no region.
type Scanned struct {
	Below   Span // of the ranks before it
	Through Span // of the ranks before it and its own
	// Fresh reports of a prefix task that nothing is in Below yet: it is the first rank of its
	// group one level up.
	Fresh bool
}

// isFirst reports whether no rank comes before those of a group.
func (s *scan) isFirst(group *levels.Group) bool {
	return s.On.Under(group.Ranks[0], group.Level)[0] == 0
}

// vector is the bytes of a segment's vector in scratch.
func (s *scan) vector() int64 { return alignLine(s.elems * int64(s.Request.Type.Size())) }

// vectors returns the number of them in a rank's scratch: a prefix for each of its levels as a
// leader of the one below, and the total of an exscan.
func (s *scan) vectors() int {
	led := max(0, len(s.ups)-1)
	if led > 0 && s.Request.Coll == Exscan {
		return led + 1
	}
	return led
}

// locate sets the places of a task's values before and after it.
func (s *scan) locate(t *Task) {
	up := s.up(int(t.Level))
	has := s.Scanned(t)
	if t.Dst = has.Through; t.Kind.Op == Exscan && has.Below.Region != 0 || has.Through.Region == 0 {
		t.Dst = has.Below
	}
	switch {
	case t.Kind.Op == Prefix && t.Group.Lead() == s.Rank:
		if t.Src = s.below(t, up+1); t.Dst.Region == 0 {
			t.Dst = t.Src
		}
	case t.Kind.Op == Prefix:
		t.Src = t.Dst
	case up == 0:
		t.Src = s.vectorAt(t, s.Request.Input(s.Rank))
	default:
		t.Src = s.through(t, up-1)
	}
}

// Scanned returns the places of the values of a scan's task on this rank. A scan or exscan
// leaves them there. A prefix task finds them there and puts its leader's value in [Task.Src]
// before them.
func (g *Graph) Scanned(t *Task) Scanned {
	up := g.scan.up(int(t.Level))
	s := Scanned{Below: g.scan.below(t, up), Through: g.scan.through(t, up)}
	if t.Kind.Op == Prefix {
		s.Fresh = t.Group.Pos(g.Rank) == 0
		if g.Request.Coll == Exscan || up < len(g.scan.ups)-1 { // it went on, or ends there
			s.Through = Span{Len: g.length(t)}
		}
	}
	return s
}

// up is the place among the phases on the way up of the one at a level.
func (s *scan) up(level int) int {
	return slices.IndexFunc(s.ups, func(at int) bool { return s.Phases[at].Level == level })
}

// below is the place of the values before the rank, after the i-th phase on its way up.
func (s *scan) below(t *Task, i int) Span {
	switch {
	case i > 0:
		return s.inScratch(t, i-1)
	case s.Request.Coll == Exscan:
		return s.vectorAt(t, Recv)
	}
	return Span{Len: s.length(t)}
}

// through is the place of the values through the rank, after the i-th phase on its way up.
func (s *scan) through(t *Task, i int) Span {
	switch last := len(s.ups) - 1; {
	case s.Request.Coll != Exscan:
		return s.vectorAt(t, Recv)
	case i < last:
		return s.inScratch(t, last)
	}
	return Span{Len: s.length(t)}
}

// inScratch is the n-th vector of a segment in scratch.
func (s *scan) inScratch(t *Task, n int) Span {
	at := s.slot(int(t.Segment)%s.slots(), s.slotBytes) + int64(n)*s.vector()
	return Span{Region: Scratch, Off: at, Len: s.length(t)}
}

// vectorAt is a segment in a buffer of the caller's.
func (s *scan) vectorAt(t *Task, r Region) Span {
	return Span{Region: r, Off: int64(t.Segment) * s.elems * int64(s.Request.Type.Size()), Len: s.length(t)}
}
