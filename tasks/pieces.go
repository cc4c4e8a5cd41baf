package tasks

import "github.com/tierflow/tierflow/levels"

// Everyone in place of a rank stands for the data of all ranks, combined in order.
const Everyone levels.Rank = -1

// Piece is bytes of one of a rank's buffers and what they are.
type Piece struct {
	At, Len int64       // in the buffer
	From    levels.Rank // whose input it is; Everyone: of all, combined
	Off     int64       // where that input has it
}

// Given is what a rank puts in: where it lies in its [Request.Input], and its place
// in the rank's input. Empty blocks are left out.
func (r Request) Given(rank levels.Rank, size int) []Piece {
	switch {
	case r.Coll == Barrier, (r.Coll == Bcast || r.Coll == Scatter) && rank != r.Root:
		return nil
	case r.TakesBlocks():
		var all []Piece
		for other := range levels.Rank(size) {
			at, n := r.Block(other)
			all = appendPiece(all, Piece{At: at, Len: n, From: rank, Off: at})
		}
		return all
	case r.GivesBlocks():
		at, n := r.Block(rank)
		if r.Input(rank) == Send {
			at = 0
		}
		return appendPiece(nil, Piece{At: at, Len: n, From: rank})
	}
	return appendPiece(nil, Piece{Len: r.Bytes(), From: rank})
}

// Promised is what a rank finds in its receive buffer in the end, if it has one.
// Other bytes of the buffer are the caller's, or hold anything if it was the input.
func (r Request) Promised(rank levels.Rank, size int) []Piece {
	from := r.Root
	if r.Reduces() {
		from = Everyone
	}
	switch {
	case r.Coll == Barrier, !r.Receives(rank):
		return nil
	case r.TakesBlocks():
		off, n := r.Block(rank)
		return appendPiece(nil, Piece{Len: n, From: from, Off: off})
	case r.GivesBlocks():
		var all []Piece
		for other := range levels.Rank(size) {
			at, n := r.Block(other)
			all = appendPiece(all, Piece{At: at, Len: n, From: other})
		}
		return all
	}
	return appendPiece(nil, Piece{Len: r.Bytes(), From: from})
}

func appendPiece(all []Piece, p Piece) []Piece {
	if p.Len == 0 {
		return all
	}
	return append(all, p)
}
