package derived

import (
	"math/bits"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
)

// Model is the closed form of one bcast algorithm of package adapt.
type Model struct {
	Algorithm string // as plans name it
	Segmented bool   // it is used with inner segments; else the message goes in one piece
	count     func(ranks int, n float64, g Gamma) float64
	inTurns   func(ranks int, n float64, g Gamma) float64 // of segments that leave one after the other
}

// Models lists the models, as the paper lists the algorithms (section 3).
func Models() []Model {
	return []Model{
		{submodules.Linear, false, linear, linearInTurns},
		{submodules.Chain, true, chain, chain},
		{submodules.KChain, true, kchain, kchainInTurns},
		{submodules.Binary, true, binary, binaryInTurns},
		{submodules.SplitBinary, true, splitBinary, splitInTurns},
		{submodules.Binomial, true, binomial, binomialInTurns},
	}
}

// Bcast finds a model by its algorithm.
func Bcast(algorithm string) (Model, bool) {
	for _, m := range Models() {
		if m.Algorithm == algorithm {
			return m, true
		}
	}
	return Model{}, false
}

// Coeff returns the longest path of a bcast of bytes among so many ranks, in segments of segment
// bytes; 0 or more than bytes: in one piece. If the last segment is shorter, all count as equally
// long. Of splitbinary this is exact if the number of segments is even or 1, and none leaves in turns.
func (m Model) Coeff(ranks int, bytes, segment int64, g Gamma) Coeff {
	if ranks < 2 {
		return Coeff{}
	}
	n, length := piecesOf(m.flow(bytes), segment)
	count := m.count
	if m.takesTurns(bytes, segment) {
		count = m.inTurns
	}
	messages := count(ranks, n, g)
	return Coeff{Alpha: messages, Beta: messages * length}
}

// takesTurns reports whether the segments of a bcast of bytes leave a rank one after the other.
func (m Model) takesTurns(bytes, segment int64) bool {
	return submodules.TakesTurns(longestPiece(m.flow(bytes), segment))
}

// flow returns how many bytes a place of the tree passes on to a child.
func (m Model) flow(bytes int64) int64 {
	if m.Algorithm == submodules.SplitBinary {
		return (bytes + 1) / 2
	}
	return bytes
}

// piecesOf returns how many segments a message has, at least one, and their mean length.
func piecesOf(bytes, segment int64) (n, length float64) {
	longest := longestPiece(bytes, segment)
	if longest == bytes {
		return 1, float64(bytes)
	}
	n = float64((bytes + longest - 1) / longest)
	return n, float64(bytes) / n
}

// longestPiece returns the length of all segments of a message but the last one.
func longestPiece(bytes, segment int64) int64 {
	if segment <= 0 {
		return bytes
	}
	return min(segment, bytes)
}

// A row of places, each of which takes as long for every segment, is a row of queues. The
// last of n segments leaves it when the first has passed all places, and the slowest one
// has served the n−1 others:
//
//	Σ b + (n−1)·max b
//
// All forms below are this sum, where b is γ of a place's children and itself.

// linear: all right below the root, up to [trees.MaxFan]; beyond them a second row.
//
//	n·γ(P)
func linear(ranks int, n float64, g Gamma) float64 { return spreadPath(ranks, trees.MaxFan, n, g) }

// spreadPath is the longest path of a tree with up to fan children of each place, the largest
// subtree first.
func spreadPath(ranks, fan int, n float64, g Gamma) float64 {
	sum, most := 0.0, 0.0
	for size := ranks; size > 1; {
		children := min(fan, size-1)
		b := g.Of(children + 1)
		sum, most = sum+b, max(most, b)
		size = (size - 1 + children - 1) / children // the largest child's tree
	}
	return sum + (n-1)*most
}

// chain: n + P − 2 messages.
func chain(ranks int, n float64, _ Gamma) float64 { return n + float64(ranks-2) }

// kchain: the root feeds [trees.Chains] chains. Each takes longer from the root than from place to
// place.
//
//	n·γ(5) + ⌈(P−1)/4⌉ − 1
func kchain(ranks int, n float64, g Gamma) float64 {
	chains := min(trees.Chains, ranks-1)
	length := (ranks - 1 + chains - 1) / chains
	return n*g.Of(chains+1) + float64(length-1)
}

// binary: H − 1 places with two children, and a last one with two or one.
//
//	(n−1)·γ(3) + (H−1)·γ(3) + b, b = γ(3) if P+1 > 3·2^(H−1), else 1
func binary(ranks int, n float64, g Gamma) float64 { return spreadPath(ranks, 2, n, g) }

// splitBinary: half of the message goes down each side of a binary tree. n counts the
// segments of a half. A place inside the tree serves its partner on the other side too,
// and the last one serves only its partner. If P is even, the last place on the left gets
// the other half from the root.
//
//	n·b + Σ γ(4) or γ(3) for the places below the root + 1, b = γ(4), at the root of few places γ(3)
func splitBinary(ranks int, n float64, g Gamma) float64 {
	if ranks == 2 {
		return 2 * n // both halves go to one rank
	}
	left := trees.Left(ranks) // the larger side
	isEven := ranks%2 == 0
	most := g.Of(3)
	if isEven {
		most = g.Of(4)
	}
	sum := most
	for size := left; size > 1; size /= 2 {
		b := g.Of(min(2, size-1) + 2)
		sum, most = sum+b, max(most, b)
	}
	if !isEven || left > 2 { // else the last place is the one without a partner
		sum++
	}
	return sum + (n-1)*most
}

// binomial: the root sends to L = ⌈log2 P⌉ children, the first of those to L−1, and so on,
// as far as the tree is full (equation 6).
//
//	n·γ(L+1) + Σ γ(L−i+1) for i = 1…L−1
func binomial(ranks int, n float64, g Gamma) float64 {
	most := g.Of(bits.Len(uint(ranks-1)) + 1)
	sum := 0.0
	for size := ranks; size > 1; {
		l := bits.Len(uint(size - 1))
		sum += g.Of(l + 1)
		// Below are the child of the first half's rest, and the one of the second quarter.
		size = max(size-1<<(l-1), 1<<(l-1)/2)
	}
	return sum + (n-1)*most
}
