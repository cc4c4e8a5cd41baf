package tasks

import "github.com/tierflow/tierflow/levels"

// Everyone in place of a rank stands for the data of all ranks, combined in order.
const Everyone levels.Rank = -1

// Piece is bytes of one of a rank's buffers and their origin.
type Piece struct {
	At, Len int64       // in the buffer
	From    levels.Rank // whose input it is, or the first of those; Everyone: of all ranks, combined
	More    levels.Rank // so many ranks after From are combined with it, in their order; 0: none
	Off     int64       // where each input has it
}

// Given is what a rank puts in: its place in its [Request.Input], and in the input as a whole.
// Empty blocks are left out.
func (r Request) Given(rank levels.Rank, size int) []Piece {
	if !r.Gives(rank) {
		return nil
	}
	row := r.Coll.row()
	all := r.layout(row.Input.Content, rank, size, true)
	for i := range all {
		all[i].From, all[i].Off = rank, all[i].At
	}
	if row.Input.Content == OwnBlock && row.givesBlocks() && r.Input(rank) == Recv {
		for i := range all {
			all[i].At, _ = r.Block(rank)
		}
	}
	return all
}

// Promised is what a rank finds in its receive buffer in the end, if it has one. Other bytes of
// the buffer are the caller's, or hold anything if it was the input.
func (r Request) Promised(rank levels.Rank, size int) []Piece {
	row := r.Coll.row()
	if !r.Receives(rank) || row.From == PrefixBelow && rank == 0 {
		return nil
	}
	all := r.layout(row.Output.Content, rank, size, false)
	for i := range all {
		p := &all[i]
		switch {
		case r.Exchanges():
			p.Off, _, _ = r.Between(p.From, rank)
		case row.takesBlocks(): // the receiver's block of others' input
			p.Off, _ = r.Block(rank)
		}
		switch row.From {
		case RootsData:
			p.From = r.Root
		case CombinedData:
			p.From = Everyone
		case PrefixThrough:
			p.More = rank
		case PrefixBelow:
			p.More = rank - 1
		}
	}
	return all
}

// layout lists the places of a rank's part of a side in a buffer: of blocks each one, From its
// owner. Empty ones are left out. gives: the side is the rank's input, else its result.
func (r Request) layout(c Content, rank levels.Rank, size int, gives bool) (all []Piece) {
	add := func(p Piece) {
		if p.Len > 0 {
			all = append(all, p)
		}
	}
	switch c {
	case Vector:
		add(Piece{Len: r.Bytes()})
	case OwnBlock:
		_, n := r.Block(rank)
		add(Piece{Len: n, From: rank})
	case AllBlocks:
		for owner := range levels.Rank(size) {
			at, n := r.Block(owner)
			if r.Exchanges() {
				at, n = r.endOf(rank, owner, gives)
			}
			add(Piece{At: at, Len: n, From: owner})
		}
	}
	return all
}

// endOf returns the place of a rank's block for another in an exchange, or from it.
func (r Request) endOf(rank, other levels.Rank, gives bool) (at, n int64) {
	if gives {
		at, _, n = r.Between(rank, other)
		return at, n
	}
	_, at, n = r.Between(other, rank)
	return at, n
}
