package sim

import "math/bits"

// Resized returns the job of a request that differs in bytes alone: messages, copies and
// reductions of to bytes where j has from. Both are more than 0. It is right where all else that was
// compiled is the same: as many segments and pieces of them, each as long in proportion. What
// doesn't divide is cut to whole bytes. j stays as it is, and shares what has no lengths.
func (j *Job) Resized(to, from int64) *Job {
	if to == from || from == 0 {
		return j
	}
	k, known := *j, map[*form]*form{}
	for i := range j.seats {
		if j.seats[i] == nil {
			continue
		}
		k.seats[i] = make([]seat, len(j.seats[i]))
		for r, s := range j.seats[i] {
			f := known[s.form]
			if f == nil {
				f = s.form.resized(uint64(to), uint64(from))
				known[s.form] = f
			}
			s.form = f
			k.seats[i][r] = s
		}
	}
	return &k
}

// resized returns the form with all lengths in proportion.
func (f *form) resized(to, from uint64) *form {
	g := *f
	g.steps = make([]step, len(f.steps))
	for i, s := range f.steps {
		high, low := bits.Mul64(uint64(s.bytes), to)
		n, _ := bits.Div64(high%from, low, from)
		s.bytes = int64(n)
		g.steps[i] = s
	}
	return &g
}
