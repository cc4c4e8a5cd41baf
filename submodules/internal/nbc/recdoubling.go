package nbc

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// recursiveDoubling: members exchange all they have with the one at twice the
// distance of before.
//
//	round 0   0↔1  2↔3  4↔5  6↔7
//	round 2   0↔2  1↔3  4↔6  5↔7      between them each combines
//	round 4   0↔4  1↔5  2↔6  3↔7
//
// With a radix of four, those whose numbers differ in one digit of four exchange at once: half as
// many rounds, and three messages in each (recursive multiplying: MPICH; Ruefenacht, Bull, Booth, Parallel
// Computing 2017).
func recursiveDoubling(r *rounds, c *submodules.Call) {
	p, stands := newPartial(r, c, 0)
	if stands {
		for distance, width := range submodules.Digits(p.fold.members, submodules.PowerOfTwo(max(2, c.N))) {
			p.exchange(distance, width)
		}
	}
	p.unfold()
}

// exchange combines the sums of all members that differ in one digit. All do so in the order of the
// digit, so all get the same bits.
func (p *partial) exchange(distance, width int) {
	n := p.c.Dst.Len
	p.room(n)
	come := []tasks.Span{p.in}
	for len(come) < width-1 {
		come = append(come, p.e.Scratch(n))
	}
	mine, sums := p.me/distance%width, make([]tasks.Span, width)
	sums[mine] = p.sum
	for other := 1; other < width; other++ { // pairs, so that nobody has several messages to take first
		peer, digit := p.peer(other*distance), mine^other
		sums[digit] = come[other-1]
		p.send(peer, p.sum)
		p.recv(peer, sums[digit])
	}
	p.end()
	sum := sums[0]
	for digit := 1; digit < width; digit++ {
		dst := p.c.Dst
		if digit < mine { // Dst has this member's own sum
			dst = sums[0]
		}
		p.reduce(dst, sum, sums[digit])
		p.end()
		sum = dst
	}
	p.sum = p.c.Dst
}
