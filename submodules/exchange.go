package submodules

import (
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/tasks"
)

// PackMost is the largest message, bytes, to be copied together from pieces before it leaves. In
// larger ones each piece is a message of its own.
const PackMost = 64 << 10

// Parcel is the messages in one direction between this rank and one member of an Alltoall.
type Parcel struct {
	Messages []tasks.Span // as many, and as long, on both
	Packed   dag.ID       // the step after which outgoing messages may leave; None: at once
	parts    []tasks.Span // pieces that are copied when they have come
	places   []tasks.Span // and their places
}

// KeepOwn adds copying this rank's piece for itself in an Alltoall, unless it is there.
func (c *Call) KeepOwn(e *Emitter, after ...dag.ID) (steps []dag.ID) {
	for i, src := range c.Out[c.Me] {
		if dst := c.In[c.Me][i]; dst != src {
			steps = append(steps, e.Copy(dst, src, after...))
		}
	}
	return steps
}

// IsNear reports whether a member is on this rank's node.
func (c *Call) IsNear(member int) bool {
	return c.On.Node(c.Group.Ranks[member]) == c.On.Node(c.Group.Ranks[c.Me])
}

// IsOver reports whether a member's block of an Alltoall arrives over the block for it.
func (c *Call) IsOver(member int) bool {
	var low, high [tasks.Regions]int64 // of the pieces for it
	for _, out := range c.Out[member] {
		if high[out.Region] == 0 || out.Off < low[out.Region] {
			low[out.Region] = out.Off
		}
		high[out.Region] = max(high[out.Region], out.Off+out.Len)
	}
	return slices.ContainsFunc(c.In[member], func(in tasks.Span) bool {
		if in.Off >= high[in.Region] || in.Off+in.Len <= low[in.Region] {
			return false
		}
		return slices.ContainsFunc(c.Out[member], func(out tasks.Span) bool {
			return in.Region == out.Region && in.Off < out.Off+out.Len && out.Off < in.Off+in.Len
		})
	})
}

// Outgoing returns this rank's messages for a member in an Alltoall. Small pieces apart from
// each other are copied together first, after the steps named.
func (c *Call) Outgoing(e *Emitter, member int, after ...dag.ID) Parcel {
	if all := bundle(c.Out[member]); all != nil {
		return Parcel{Messages: c.cut(all), Packed: None}
	}
	return c.OutgoingCopy(e, member, after...)
}

// OutgoingCopy is [Call.Outgoing] of copies: the pieces may be written over after Packed.
func (c *Call) OutgoingCopy(e *Emitter, member int, after ...dag.ID) (p Parcel) {
	messages, parts := separatePieces(c.Out[member], e.Scratch)
	var copies []dag.ID
	for i, src := range c.Out[member] {
		copies = append(copies, e.Copy(parts[i], src, after...))
	}
	return Parcel{Messages: c.cut(messages), Packed: e.Join(copies...)}
}

// Incoming returns the messages from a member in an Alltoall. take makes the memory for pieces
// that can't be received in their places: small ones apart from each other, and those over data
// that this rank has yet to send.
func (c *Call) Incoming(member int, take func(bytes int64) tasks.Span) (p Parcel) {
	p.Messages = bundle(c.In[member])
	if p.Messages == nil || c.IsOver(member) {
		p.Messages, p.parts = separatePieces(c.In[member], take)
		p.places = c.In[member]
	}
	p.Messages = c.cut(p.Messages)
	return p
}

// IsApart reports whether [Parcel.Settle] has something to copy.
func (p *Parcel) IsApart() bool { return len(p.places) > 0 }

// Places returns the places of each message from a member of an Alltoall on this rank: its bytes
// go to one place after the other.
func (c *Call) Places(member int) (all [][]tasks.Span) {
	messages := bundle(c.In[member])
	if messages == nil {
		messages, _ = separatePieces(c.In[member], func(n int64) tasks.Span { return tasks.Span{Len: n} })
	}
	left := slices.Clone(c.In[member])
	for _, m := range c.cut(messages) {
		var places []tasks.Span
		for n := m.Len; n > 0; {
			s := left[0].Cut(0, min(n, left[0].Len))
			places = append(places, s)
			if n -= s.Len; s.Len == left[0].Len {
				left = left[1:]
			} else {
				left[0] = left[0].Cut(s.Len, left[0].Len-s.Len)
			}
		}
		all = append(all, places)
	}
	return all
}

// Settle adds a copy of the arrived data to its place, after the steps named, and returns the copy's step.
func (p *Parcel) Settle(e *Emitter, after ...dag.ID) dag.ID {
	if len(p.places) == 0 {
		return e.Join(after...)
	}
	var copies []dag.ID
	came := e.Join(after...)
	for i, dst := range p.places {
		copies = append(copies, e.Copy(dst, p.parts[i], came))
	}
	return e.Join(copies...)
}

// bundle returns the messages for pieces as they lie: one each if they are large or there is
// one, or one for all if they lie side by side; nil if they have to be copied together.
func bundle(pieces []tasks.Span) []tasks.Span {
	if len(pieces) < 2 || tasks.TotalLen(pieces) > PackMost {
		return slices.Clip(pieces)
	}
	all := pieces[0]
	for _, s := range pieces[1:] {
		if s.Region != all.Region || s.Off != all.Off+all.Len {
			return nil
		}
		all.Len += s.Len
	}
	return []tasks.Span{all}
}

// separatePieces returns messages for pieces in other memory, and the place of each piece in it.
func separatePieces(pieces []tasks.Span, take func(bytes int64) tasks.Span) (messages, parts []tasks.Span) {
	if len(pieces) == 0 {
		return nil, nil
	}
	room, at := take(tasks.TotalLen(pieces)), int64(0)
	for _, s := range pieces {
		parts = append(parts, room.Cut(at, s.Len))
		at += s.Len
	}
	if at > PackMost {
		return parts, parts
	}
	return []tasks.Span{room}, parts
}
