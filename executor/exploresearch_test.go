package executor_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// finding is a script that shows a fault.
type finding struct {
	stage  *stage
	script []move
	fault  error
}

func (f *finding) String() string {
	text := fmt.Sprintf("%v\n%v\nafter %d moves:", f.fault, f.stage, len(f.script))
	for _, m := range f.script {
		text += "\n  " + m.String()
	}
	return text
}

// replay plays a script from the begin, leaving out what is impossible, and then goes on with the first possible moves. It
// returns what was done until a fault, nil without one.
func (s *stage) replay(t failer, script []move) *finding {
	p := newPlay(t, s)
	p.begin(t)
	var done []move
	for len(p.moves) > 0 {
		m := p.moves[0]
		for len(script) > 0 {
			m, script = script[0], script[1:]
			if slices.Contains(p.moves, m) {
				break
			}
			m = p.moves[0]
		}
		done = append(done, m)
		if err := p.do(m); err != nil {
			p.abandon(t)
			return &finding{s, done, err}
		}
	}
	p.close(t)
	return nil
}

// shorten leaves out moves as long as a fault stays.
func (f *finding) shorten(t failer) *finding {
	for n := len(f.script) / 2; n > 0; n /= 2 {
		for at := 0; at+n <= len(f.script); {
			if g := f.stage.replay(t, slices.Concat(f.script[:at], f.script[at+n:])); g != nil && len(g.script) < len(f.script) {
				f = g
			} else {
				at += n
			}
		}
	}
	return f
}

// explored counts what an exploration has seen.
type explored struct {
	states, events, scripts int
	all                     bool // there is nothing else to see
}

// exhaust plays all scripts of a stage, but for the order of moves of different ranks that makes no difference, until it has
// seen so many states.
func (s *stage) exhaust(t failer, most int) (seen explored, f *finding) {
	p := newPlay(t, s)
	states := map[uint64]struct{}{}
	type point struct {
		moves []move
		at    int // of moves, the one under way
	}
	var path []point
	for {
		p.begin(t)
		fresh, depth := true, 0
		var script []move
		for len(p.moves) > 0 {
			m := p.moves[0]
			switch {
			case depth < len(path):
				m = path[depth].moves[path[depth].at]
			case fresh:
				path = append(path, point{moves: slices.Clone(p.moves)})
			}
			depth++
			script = append(script, m)
			if err := p.do(m); err != nil {
				return seen, &finding{s, script, err}
			}
			if depth >= len(path) && fresh {
				key := p.key()
				if _, known := states[key]; known {
					fresh = false // what follows is known: to the end, as a script must be
				}
				states[key] = struct{}{}
			}
		}
		seen.scripts++
		for len(path) > 0 {
			if last := &path[len(path)-1]; last.at+1 < len(last.moves) {
				last.at++
				break
			}
			path = path[:len(path)-1]
		}
		seen.states, seen.events = len(states), p.events
		if len(path) == 0 {
			seen.all = true
			break
		}
		if len(states) >= most {
			break
		}
	}
	p.close(t)
	return seen, nil
}

// walk plays random scripts of a stage.
func (s *stage) walk(t failer, r *rand.Rand, scripts int) (seen explored, f *finding) {
	p := newPlay(t, s)
	for range scripts {
		p.begin(t)
		var script []move
		weights := make([]int, len(p.links)*int(moveKinds)) // of this script: some ranks are slow, some moves are rare
		for i := range weights {
			weights[i] = 1 << r.IntN(8)
		}
		if r.IntN(3) == 0 {
			for i := range weights {
				weights[i] = 1
			}
		}
		for len(p.moves) > 0 {
			m := p.pick(r, weights)
			script = append(script, m)
			if err := p.do(m); err != nil {
				p.abandon(t)
				return seen, &finding{s, script, err}
			}
		}
		seen.scripts++
		seen.events = p.events
	}
	p.close(t)
	return seen, nil
}

// pick draws a possible move; cancels and leaves are rare.
func (p *play) pick(r *rand.Rand, weights []int) move {
	sum := 0
	weight := func(m move) int {
		w := 16 * weights[int(m.rank)*int(moveKinds)+int(m.kind)]
		if m.kind >= cancelMove && m.kind <= leaveMove {
			w = 1
		}
		return w
	}
	for _, m := range p.moves {
		sum += weight(m)
	}
	at := r.IntN(sum)
	for _, m := range p.moves {
		if at -= weight(m); at < 0 {
			return m
		}
	}
	panic("unreachable")
}
