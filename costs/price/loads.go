package price

// stage is what a phase takes of a segment.
type stage struct {
	first Terms   // from when its ranks may begin until the last one has ended
	root  load    // of the leader of all ranks, or of each where all do the same
	inner load    // of the busiest of the others
	total float64 // of all processors together, ns
	along float64 // wire time during which processors are busy with other pieces, ns
	lag   float64 // how long a rank keeps a place in its window, ns
}

// load is what a segment takes of a rank.
type load struct {
	in, out float64 // of its wire, ns each way
	busy    Terms   // of its processor: messages and work
}

func (l load) plus(k load) load { return load{l.in + k.in, l.out + k.out, l.busy.plus(k.busy)} }

// stageOfEqual returns the stage of ranks that all do the same. So many of them are busy.
func stageOfEqual(first Terms, each load, ranks float64) stage {
	return stage{first: first, root: each, inner: each, total: ranks * each.busy.sum(), lag: first.sum()}
}

// shareWire gives all ranks one wire, busy for so many ns.
func (s *stage) shareWire(busy float64) {
	for _, l := range []*load{&s.root, &s.inner} {
		l.in, l.out = max(l.in, busy), max(l.out, busy)
	}
}

// sums are the stages of all phases together. Wires of different levels don't add up.
type sums struct {
	fill        Terms
	root, inner []load // by level
	total       float64
	along       float64
	lag         float64
}

func (s *sums) addStage(st *stage, level int) {
	s.fill = s.fill.plus(st.first)
	s.root[level], s.inner[level] = s.root[level].plus(st.root), s.inner[level].plus(st.inner)
	s.total += st.total
	s.along += st.along
	s.lag = max(s.lag, st.lag)
}

// busiest returns the load of the busiest of wires and processors.
func (s *sums) busiest() (t Terms) {
	for _, role := range [][]load{s.root, s.inner} {
		var busy Terms
		for _, l := range role {
			busy = busy.plus(l.busy)
			t = later(t, Terms{Wire: max(l.in, l.out)})
		}
		t = later(t, busy)
	}
	return t
}

// terms returns what so many segments take.
func (s *sums) terms(count, window, cores float64) (t Terms) {
	t = s.fill
	along := s.along
	if count > 1 {
		each := s.busiest()
		t = each.times(count)
		along = t.Wire
		t.Filling = max(0, s.fill.sum()-each.sum())
		t.Waiting = max(0, float64((count/window-1)*s.lag)-float64((count-1)*each.sum()))
	}
	if cores > 0 {
		t.Processor = max(t.Processor, s.total*count/cores-t.Work-along)
	}
	return t
}
