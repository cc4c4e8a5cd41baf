package sim

import "math/bits"

// Resized returns the job of a request that differs in bytes alone: messages, copies and reductions
// have to bytes in place of from. Both are more than 0. It is right if nothing else would be
// compiled differently: as many segments and pieces of them, each as long in proportion. Lengths
// are cut to whole bytes. j stays as it is, and shares everything without lengths.
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
				f = s.form.resize(uint64(to), uint64(from))
				known[s.form] = f
			}
			s.form = f
			k.seats[i][r] = s
		}
	}
	return &k
}

// resize returns the form with all lengths in proportion.
func (f *form) resize(to, from uint64) *form {
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
