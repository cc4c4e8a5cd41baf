package foreign

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// The libraries.
const (
	OpenMPI = "ompi"
	MPICH   = "mpich"
)

// Row is an algorithm of another library, and the equal plan.
type Row struct {
	Library    string
	Collective string // by its name in the library
	Number     int    // Open MPI's; 0: it has none
	Name       string
	// Plan does the same. Its keys are those of the level between nodes; inside a single node
	// the same holds. Empty: there is no counterpart, and Why describes the algorithm.
	Plan string
	// Where is a condition of rules for the algorithm. Otherwise it turns into another one, by the
	// plan Else.
	Else, Where string
	Why         string
	Closest     string // a difference of the plan; empty: none
}

// collective is a library's collective, and its counterpart here.
type collective struct {
	id      int // Open MPI's number
	name    string
	coll    tasks.Collective
	differ  bool   // blocks differ
	regular bool   // only with equal blocks
	size    string // the size of its messages as Open MPI counts it, in words of rules; 0: it is always 0
}

// collectives are those with a counterpart.
var collectives = []collective{
	{0, "allgather", tasks.Allgather, false, true, "total"},
	{1, "allgatherv", tasks.Allgather, true, false, "total"},
	{2, "allreduce", tasks.Allreduce, false, false, "bytes"},
	{3, "alltoall", tasks.Alltoall, false, true, "total"},
	{4, "alltoallv", tasks.Alltoall, true, false, "0"},
	{6, "barrier", tasks.Barrier, false, false, "0"},
	{7, "bcast", tasks.Bcast, false, false, "bytes"},
	{8, "exscan", tasks.Exscan, false, false, perElement},
	{9, "gather", tasks.Gather, false, true, "total"},
	{11, "reduce", tasks.Reduce, false, false, "bytes"},
	{12, "reduce_scatter", tasks.ReduceScatter, true, false, "total"},
	{13, "reduce_scatter_block", tasks.ReduceScatter, false, true, "total"},
	{14, "scan", tasks.Scan, false, false, perElement},
	{15, "scatter", tasks.Scatter, false, true, "total"},
}

// perElement is the size of a scan as Open MPI counts it: an element of each rank.
const perElement = "element * ranks"

// others are Open MPI's collectives without counterpart, by number.
var others = map[int]string{
	5: "alltoallw", 10: "gatherv", 16: "scatterv", 17: "neighbor_allgather", 18: "neighbor_allgatherv", 19: "neighbor_alltoall",
	20: "neighbor_alltoallv", 21: "neighbor_alltoallw",
}

// head is the name of the collective in rules.
func (c *collective) head() string {
	if c.differ {
		return c.coll.String() + "v"
	}
	return c.coll.String()
}

// findCollective returns the collective of a library's name.
func findCollective(name string) *collective {
	i := slices.IndexFunc(collectives, func(c collective) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return &collectives[i]
}

// Conditions of algorithms that turn into others without them.
const (
	ifPower = "pow2(ranks)"
	ifEven  = "ranks / 2 * 2 = ranks"
)

// rows are all known algorithms: numbers of Open MPI 4.1 to 6, names of MPICH 4.0 to 4.3.
var rows = slices.Concat(
	ompi("bcast",
		"basic_linear", "shape=flat,ib=nbc/linear",
		"chain", "shape=flat,ib=adapt/kchain",
		"pipeline", "shape=flat,ib=adapt/chain",
		"split_binary_tree", "shape=flat,ib=adapt/splitbinary",
		"binary_tree", "shape=flat,ib=adapt/binary",
		"binomial", "shape=flat,ib=adapt/binomial",
		"knomial", "shape=flat,ib=nbc/knomial",
		"scatter_allgather", "shape=flat-sag,is=nbc/binomial,iag=nbc/recdoubling", ifPower, "shape=flat-sag,is=nbc/binomial,iag=nbc/bruck",
		"scatter_allgather_ring", "shape=flat-sag,is=nbc/binomial,iag=nbc/ring"),
	ompi("reduce",
		"linear", "shape=flat,ir=nbc/linear",
		"chain", "shape=flat,ir=adapt/kchain",
		"pipeline", "shape=flat,ir=adapt/chain",
		"binary", "shape=flat,ir=adapt/binary",
		"binomial", "shape=flat,ir=adapt/binomial",
		"in-order_binary", "shape=flat,ir=adapt/inorderbinary",
		"rabenseifner", "shape=flat,ir=nbc/rabenseifner",
		"knomial", "shape=flat,ir=adapt/binomial//4"),
	ompi("allreduce",
		"basic_linear", "shape=flat,ir=nbc/linear,ib=nbc/linear",
		"nonoverlapping", "!a reduce and a bcast by tuned's own decisions",
		"recursive_doubling", "shape=flat-ar,iar=nbc/recdoubling",
		"ring", "shape=flat-ar,iar=nbc/ring",
		"segmented_ring", "shape=flat-ar,iar=adapt/ring",
		"rabenseifner", "shape=flat-ar,iar=nbc/rabenseifner",
		"allgather_reduce", "!each rank combines what it has gathered of all"),
	ompi("allgather",
		"linear", "!a gather and a bcast by tuned's own decisions",
		"bruck", "shape=flat,iag=nbc/bruck",
		"recursive_doubling", "shape=flat,iag=nbc/recdoubling", ifPower, "shape=flat,iag=nbc/bruck",
		"ring", "shape=flat,iag=nbc/ring",
		"neighbor", "shape=flat,iag=nbc/neighbor", ifEven, "shape=flat,iag=nbc/ring",
		"two_proc", "!one exchange, of two ranks only",
		"sparbit", "!bruck with its blocks in another order",
		"direct-messaging", "shape=flat,iag=adapt/linear"),
	ompi("allgatherv",
		"default", "!a gatherv and a bcast",
		"bruck", "shape=flat,iag=nbc/bruck",
		"ring", "shape=flat,iag=nbc/ring",
		"neighbor", "shape=flat,iag=nbc/neighbor", ifEven, "shape=flat,iag=nbc/ring",
		"two_proc", "!one exchange, of two ranks only",
		"sparbit", "!bruck with its blocks in another order"),
	ompi("alltoall",
		"linear", "shape=flat,ia=nbc/linear", "~32 partners at a time, not all",
		"pairwise", "shape=flat,ia=nbc/pairwise",
		"modified_bruck", "shape=flat,ia=nbc/bruck",
		"linear_sync", "shape=flat,ia=adapt/linear", "~16 partners at a time, not all or as many as is set",
		"two_proc", "!one exchange, of two ranks only"),
	ompi("alltoallv",
		"basic_linear", "shape=flat,ia=nbc/linear", "~32 partners at a time, not all",
		"pairwise", "shape=flat,ia=nbc/pairwise"),
	ompi("barrier",
		"linear", "shape=flat,ir=nbc/linear,ib=nbc/linear",
		"double_ring", "!two rounds of a ring",
		"recursive_doubling", "shape=flat-ar,iar=nbc/recdoubling",
		"bruck", "shape=flat-ar,iar=nbc/dissemination",
		"two_proc", "!one exchange, of two ranks only",
		"tree", "shape=flat,ir=nbc/binomial,ib=nbc/binomial"),
	ompi("exscan", "linear", "shape=flat,iex=adapt/chain", "recursive_doubling", "shape=flat,iex=nbc/recdoubling"),
	ompi("scan", "linear", "shape=flat,ix=adapt/chain", "recursive_doubling", "shape=flat,ix=nbc/recdoubling"),
	ompi("gather",
		"basic_linear", "shape=flat,ig=nbc/linear", "~the root takes all in one round, not one after the other",
		"binomial", "shape=flat,ig=nbc/binomial",
		"linear_sync", "shape=flat,ig=adapt/linear", "~the root calls nobody, and waits for nobody"),
	ompi("scatter",
		"basic_linear", "shape=flat,is=nbc/linear", "~the root sends to all in one round, not one after the other",
		"binomial", "shape=flat,is=nbc/binomial",
		"linear_nb", "shape=flat,is=adapt/linear"),
	ompi("reduce_scatter",
		"non-overlapping", "shape=flat,irs=nbc/nonoverlapping",
		"recursive_halving", "shape=flat,irs=nbc/halving", ifPower, "",
		"ring", "shape=flat,irs=nbc/ring",
		"butterfly", "!recursive halving with its blocks in another order"),
	ompi("reduce_scatter_block",
		"basic_linear", "shape=flat,irs=nbc/nonoverlapping",
		"recursive_doubling", "!all blocks are exchanged in each round",
		"recursive_halving", "shape=flat,irs=nbc/halving", ifPower, "",
		"butterfly", "!recursive halving with its blocks in another order"),

	mpich("bcast", "Bcast",
		"intra_binomial", "shape=flat,ib=adapt/binomial",
		"intra_scatter_recursive_doubling_allgather", "shape=flat-sag,is=nbc/binomial,iag=nbc/recdoubling", ifPower, "",
		"intra_scatter_ring_allgather", "shape=flat-sag,is=nbc/binomial,iag=nbc/ring",
		"intra_smp", "!the root's node first, by point-to-point messages of leaders",
		"composition_alpha", "shape=han,ib=adapt/binomial",
		"composition_beta", "!the root's node first, then leaders by the algorithms for them",
		"composition_gamma", "!all ranks, by the algorithms of the other file"),
	mpich("allreduce", "Allreduce",
		"intra_recursive_doubling", "shape=flat-ar,iar=nbc/recdoubling",
		"intra_reduce_scatter_allgather", "shape=flat-ar,iar=nbc/rabenseifner",
		"intra_ring", "shape=flat-ar,iar=nbc/ring",
		"intra_smp", "!leaders, by the algorithms for them",
		"composition_alpha", "shape=ar",
		"composition_beta", "!all ranks, by the algorithms of the other file",
		"composition_gamma", "!one node, through shared memory"),
	mpich("reduce", "Reduce",
		"intra_binomial", "shape=flat,ir=adapt/binomial",
		"intra_reduce_scatter_gather", "shape=flat,ir=nbc/rabenseifner",
		"intra_smp", "!leaders, by the algorithms for them",
		"composition_alpha", "shape=han",
		"composition_beta", "shape=han,ir=adapt/binomial",
		"composition_gamma", "!all ranks, by the algorithms of the other file"),
	mpich("allgather", "Allgather", mpichGathers...),
	mpich("allgatherv", "Allgatherv", mpichGathers...),
	mpich("alltoall", "Alltoall",
		"intra_brucks", "shape=flat,ia=nbc/bruck",
		"intra_scattered", "shape=flat,ia=nbc/linear",
		"intra_pairwise", "shape=flat,ia=nbc/pairwise",
		"intra_pairwise_sendrecv_replace", "!pairwise, in place only"),
	mpich("alltoallv", "Alltoallv",
		"intra_scattered", "shape=flat,ia=nbc/linear",
		"intra_pairwise_sendrecv_replace", "!pairwise, in place only"),
	mpich("barrier", "Barrier",
		"intra_dissemination", "shape=flat-ar,iar=nbc/dissemination",
		"intra_smp", "shape=ar,iar=nbc/dissemination"),
	mpich("gather", "Gather", "intra_binomial", "shape=flat,ig=nbc/binomial"),
	mpich("scatter", "Scatter", "intra_binomial", "shape=flat,is=nbc/binomial"),
	mpich("scan", "Scan",
		"intra_recursive_doubling", "shape=flat,ix=nbc/recdoubling",
		"intra_smp", "shape=han,iex=nbc/recdoubling"),
	mpich("exscan", "Exscan", "intra_recursive_doubling", "shape=flat,iex=nbc/recdoubling"),
	mpich("reduce_scatter", "Reduce_scatter", mpichReduceScatters...),
	mpich("reduce_scatter_block", "Reduce_scatter_block", mpichReduceScatters...),
)

// Rows of collectives that MPICH has for equal blocks and for others.
var (
	mpichGathers = []string{
		"intra_brucks", "shape=flat,iag=nbc/bruck",
		"intra_recursive_doubling", "shape=flat,iag=nbc/recdoubling", ifPower, "",
		"intra_ring", "shape=flat,iag=nbc/ring",
	}
	mpichReduceScatters = []string{
		"intra_noncommutative", "!recursive doubling that keeps the order of ranks",
		"intra_recursive_halving", "shape=flat,irs=nbc/halving", ifPower, "",
		"intra_pairwise", "shape=flat,irs=nbc/pairwise", "~all partners in one round",
		"intra_recursive_doubling", "!all blocks are exchanged in each round",
	}
)

// ompi returns rows of Open MPI, numbered from 1. A row is a name and a plan. Maybe a condition
// follows, with the plan for elsewhere, and after ~ a difference. A plan with ! in front says why
// there is none.
func ompi(coll string, words ...string) (all []Row) {
	for len(words) > 0 {
		var r Row
		r, words = row(words)
		r.Library, r.Collective, r.Number = OpenMPI, coll, len(all)+1
		all = append(all, r)
	}
	return all
}

// mpich returns rows of MPICH, as ompi does.
func mpich(coll, prefix string, words ...string) (all []Row) {
	for len(words) > 0 {
		var r Row
		r, words = row(words)
		r.Library, r.Collective, r.Name = MPICH, coll, "MPIR_"+prefix+"_"+r.Name
		if name, composed := strings.CutPrefix(r.Name, "MPIR_"+prefix+"_composition"); composed {
			r.Name = "MPIDI_" + prefix + "_intra_composition" + name
		}
		all = append(all, r)
	}
	return all
}

// row returns the row at the beginning of words, and the rest of them.
func row(words []string) (r Row, rest []string) {
	r = Row{Name: words[0], Plan: words[1]}
	if why, none := strings.CutPrefix(r.Plan, "!"); none {
		r.Plan, r.Why = "", why
	}
	rest = words[2:]
	if len(rest) > 1 && (rest[0] == ifPower || rest[0] == ifEven) {
		r.Where, r.Else = rest[0], rest[1]
		rest = rest[2:]
	}
	if len(rest) > 0 && strings.HasPrefix(rest[0], "~") {
		r.Closest, rest = rest[0][1:], rest[1:]
	}
	return r, rest
}

// Rows returns the table.
func Rows() []Row { return slices.Clone(rows) }

// For returns the plan for so many ranks; empty: there is no counterpart.
func (r *Row) For(ranks int64) string {
	if r.Where == ifPower && ranks&(ranks-1) != 0 || r.Where == ifEven && ranks%2 == 1 {
		return r.Else
	}
	return r.Plan
}

// Find returns the row of a library's collective with a number or a name.
func Find(library, coll, word string) (Row, error) {
	var known []string
	number, err := strconv.Atoi(word)
	for _, r := range rows {
		if r.Library != library || r.Collective != coll {
			continue
		}
		if short := shortName(r.Name); r.Name == word || short == word || err == nil && r.Number > 0 && r.Number == number {
			return r, nil
		}
		if r.Number > 0 {
			known = append(known, fmt.Sprintf("%d %s", r.Number, r.Name))
		} else {
			known = append(known, r.Name)
		}
	}
	if len(known) == 0 {
		return Row{}, fmt.Errorf("%s: nothing is known of %s's", coll, library)
	}
	return Row{}, fmt.Errorf("%s %q: unknown; %s has %s", coll, word, library, strings.Join(known, ", "))
}

// shortName is MPICH's name of an algorithm without its prefix: binomial.
func shortName(name string) string {
	if _, short, is := strings.Cut(name, "_intra_"); is {
		return short
	}
	return name
}

// settings are the numbers of an algorithm. 0: the library's own.
type settings struct {
	Segment int64 // bytes
	Fan     int   // ranks fed by each one, or chains
}

// fill returns a plan of a row as it stands in rules and in TIERFLOW_PLAN: for one level between
// nodes or inside one, with the numbers in their places. unused are those without a place, or too large for it.
func fill(plan string, s settings) (text string, unused []string) {
	p, err := tasks.ParsePlan(plan)
	if err != nil {
		panic(err) // of the table: a test reads it
	}
	p.Segment, p.Window = tasks.Whole, window
	took := false
	for _, key := range p.Keys() {
		c, _ := p.Choice(key)
		if s.Segment > 0 && takesInner(c) {
			c.Inner = s.Segment
		} else if s.Segment > 0 {
			p.Segment, p.Window = s.Segment, pipelined
		}
		if s.Fan > 1 && s.Fan <= tasks.MaxNumber && takesFan(c) {
			c.N, took = s.Fan, true
		}
		if s.Fan == 1 && c.Algorithm == "kchain" {
			c.Algorithm, took = "chain", true
		}
		p = p.Set(key, c)
	}
	if s.Fan > 0 && !took {
		unused = append(unused, fmt.Sprintf("fan-out %d", s.Fan))
	}
	for _, key := range p.Keys() {
		c, _ := p.Choice(key)
		if p.Shape.IsFlat() {
			p = p.Set("s"+key[1:], c) // for ranks of one node
		}
	}
	return p.String(), unused
}

// Windows of plans from other libraries: segments on their way.
const (
	window    = 4
	pipelined = 8
)

// takesInner reports whether an algorithm has segments of its own.
func takesInner(c tasks.Choice) bool { return c.Submodule == "adapt" }

// takesFan reports whether an algorithm has a number, Open MPI's fan-out.
func takesFan(c tasks.Choice) bool {
	return c.Submodule == "adapt" && (c.Algorithm == "kchain" || c.Algorithm == "binomial" && c.N > 0)
}

// usualFan is the fan-out of Open MPI's parameters coll_tuned_*_algorithm_chain_fanout and
// tree_fanout unless somebody sets it, and that of plans. In its files 0 stands for no such thing.
const usualFan = 4

// inFile returns the numbers of an algorithm in Open MPI's files. There a fan-out of 0
// makes a single chain, and a knomial tree divides by it.
func (r *Row) inFile(s settings, line int, notes *[]Note) settings {
	if s.Fan > 0 {
		return s
	}
	switch r.Name {
	case "chain":
		s.Fan = 1
	case "knomial":
		if r.Collective == "reduce" {
			*notes = append(*notes, Note{line, fmt.Sprintf("reduce knomial with fan-out 0, by which Open MPI divides: %d is taken", usualFan)})
		}
	}
	return s
}

// match returns Open MPI's or MPICH's row for a plan, with its numbers.
func match(library, coll string, p tasks.Plan) (r Row, s settings, known bool) {
	for _, r := range rows {
		if r.Library != library || r.Collective != coll || r.Plan == "" {
			continue
		}
		for _, plan := range []string{r.Plan, r.Else} {
			if s, fits := matches(plan, p); plan != "" && fits {
				return r, s, true
			}
		}
	}
	return Row{}, settings{}, false
}

// matches reports whether a plan does the same as a row's, and with its numbers.
func matches(plan string, p tasks.Plan) (s settings, fits bool) {
	want, err := tasks.ParsePlan(plan)
	if err != nil || want.Shape != p.Shape || p.Order != tasks.AnyOrder || p.Eager != 0 {
		return s, false
	}
	if p.Segment != 0 && p.Segment != tasks.Whole {
		s.Segment = p.Segment
	}
	for _, key := range want.Keys() {
		w, _ := want.Choice(key)
		c, known := p.Choice(key)
		if !known {
			c, known = p.Choice(key[:1])
		}
		if !known || c.Submodule != w.Submodule || c.Algorithm != w.Algorithm {
			return s, false
		}
		if c.Inner > 0 {
			s.Segment = c.Inner
		}
		switch takes := takesFan(w); {
		case w.N > 0 && c.N == 0, c.N > 0 && c.N != w.N && !takes:
			return s, false
		case takes:
			s.Fan = cmp.Or(c.N, usualFan)
		}
	}
	for _, key := range p.Keys() { // nothing else is chosen between nodes
		if _, wanted := want.Choice(key); key[0] == 'i' && len(key) > 1 && !wanted {
			return s, false
		}
	}
	return s, true
}

// Note is a part of a file without a counterpart on the other side.
type Note struct {
	Line    int // of the file; 0: of no line
	Message string
}

// String returns line 12: message.
func (n Note) String() string {
	if n.Line == 0 {
		return n.Message
	}
	return fmt.Sprintf("line %d: %s", n.Line, n.Message)
}

// leaf returns a row's plan as rules have it, in parentheses if it depends on the ranks; notes
// get the parts without a counterpart.
func leaf(r Row, s settings, line int, notes *[]Note) string {
	note := func(format string, args ...any) { *notes = append(*notes, Note{line, fmt.Sprintf(format, args...)}) }
	what := r.Collective + " " + r.Name
	if r.Number > 0 {
		what = fmt.Sprintf("%s %d, %s,", r.Collective, r.Number, r.Name)
	}
	if r.Plan == "" {
		note("%s has no counterpart (%s): left to others", what, r.Why)
		return "default"
	}
	text, unused := fill(r.Plan, s)
	for _, u := range unused {
		note("%s takes no %s here", what, u)
	}
	if r.Where == "" {
		return text
	}
	other := "default"
	if r.Else != "" {
		other, _ = fill(r.Else, s)
	}
	return fmt.Sprintf("(if %s then %s else %s)", r.Where, text, other)
}
