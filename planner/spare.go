package planner

import "github.com/tierflow/tierflow/tasks"

// maxSpare bounds what a communicator keeps of ended calls for further ones.
const maxSpare = 64

// spare has what calls have left for the next one of an equal request. [Comm] guards it.
type spare struct {
	all map[tasks.Request][]any
	n   int
}

// take takes one out, nil if there is none.
func (s *spare) take(r tasks.Request) any {
	list := s.all[r]
	if len(list) == 0 {
		return nil
	}
	s.all[r] = list[:len(list)-1]
	s.n--
	return list[len(list)-1]
}

// put puts one in, and forgets all others first if there are too many.
func (s *spare) put(r tasks.Request, x any) {
	if s.all == nil || s.n >= maxSpare {
		s.all, s.n = map[tasks.Request][]any{}, 0
	}
	s.all[r] = append(s.all[r], x)
	s.n++
}
