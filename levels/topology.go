package levels

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels/strictjson"
)

// Topology is where every rank of a job lives on every level. It is immutable and
// safe for concurrent use.
//
// Methods that take a rank or a level index panic, as a slice does, when it is
// out of range.
type Topology struct {
	levels []Level
	domain [][]int32  // domain[k][r]; the children of a domain are numbered consecutively
	count  []int      // domains per level
	names  [][]string // names[k][d]; a nil names[k] is level name + d
	ranks  [][][]Rank // ranks[k][d]: those of a domain, ascending; of all levels but the outermost
	runs   []bool     // every domain of level k is a contiguous run of ranks
	one    bool       // the ranks are goroutines of one process
	made   *made
}

// New makes a topology of len(paths) ranks. levels are given from the inside out.
// paths[r][k], with k from 0 to len(levels)-2, labels the level-k domain of rank r:
// ranks with equal labels from k outwards share that domain, so labels need to be
// distinct only within the parent domain. The outermost level holds all ranks
// and has no label. The error lists all that is wrong.
func New(levels []Level, paths [][]int32) (*Topology, error) {
	t, err := build(levels, paths, func(label int32) error {
		if label < 0 {
			return fmt.Errorf("domain %d; allowed are numbers from 0", label)
		}
		return nil
	}, nil, position{})
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	return t, nil
}

// Named is [New] with domain names in place of numbers; [Topology.DomainName]
// returns them.
func Named(levels []Level, paths [][]string) (*Topology, error) {
	t, err := build(levels, paths, checkName, itself, position{})
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	return t, nil
}

func itself(s string) string { return s }

// build checks the input and interns the labels. A nil name means default names.
func build[T comparable](levels []Level, paths [][]T, check func(T) error, name func(T) string, pos position) (*Topology, error) {
	var c strictjson.Complaints
	checkLevels(&c, levels, pos.level)
	if n := len(paths); n < 1 || n > MaxRanks {
		c.Add("%s%d ranks; allowed are 1 to %d", pos.rank(-1), n, MaxRanks)
	}
	for r, path := range paths {
		if len(path) != len(levels)-1 {
			c.Add("%srank %d: %d domains; with %d levels each rank has %d, the outermost being common to all",
				pos.rank(r), r, len(path), len(levels), len(levels)-1)
		}
		for k, label := range path {
			if err := check(label); err != nil {
				c.Add("%srank %d: level %d: %w", pos.rank(r), r, k, err)
			}
		}
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	ids, labels := intern(paths, len(levels)-1)
	if name == nil {
		return assemble(levels, len(paths), ids, nil), nil
	}
	return assemble(levels, len(paths), ids, func(k int, id int32) string { return name(labels[k][id]) }), nil
}

// intern turns labels that are distinct within their parent into numbers that
// are distinct within their level.
func intern[T comparable](paths [][]T, inner int) (ids [][]int32, labels [][]T) {
	type key struct {
		parent int32
		label  T
	}
	ids, labels = make([][]int32, inner), make([][]T, inner)
	parent := make([]int32, len(paths))
	for k := inner - 1; k >= 0; k-- {
		seen := map[key]int32{}
		ids[k] = make([]int32, len(paths))
		for r, path := range paths {
			at := key{parent[r], path[k]}
			id, ok := seen[at]
			if !ok {
				id = int32(len(labels[k]))
				seen[at] = id
				labels[k] = append(labels[k], path[k])
			}
			ids[k][r] = id
		}
		parent = ids[k]
	}
	return ids, labels
}

// assemble makes the topology from ids[k][r], numbers distinct within their level;
// name, if any, is asked with these.
func assemble(levels []Level, size int, ids [][]int32, name func(k int, id int32) string) *Topology {
	depth := len(levels)
	t := &Topology{
		levels: slices.Clone(levels),
		domain: make([][]int32, depth),
		count:  make([]int, depth),
		names:  make([][]string, depth),
		ranks:  make([][][]Rank, depth-1),
		runs:   make([]bool, depth),
		made:   &made{},
	}
	top := depth - 1
	t.domain[top], t.count[top], t.runs[top] = make([]int32, size), 1, true
	for k := top - 1; k >= 0; k-- {
		var order []int32
		t.domain[k], order = renumber(ids[k], t.domain[k+1], t.count[k+1])
		t.count[k] = len(order)
		t.ranks[k] = members(t.domain[k], t.count[k])
		t.runs[k] = changes(t.domain[k]) == t.count[k]-1
		if name != nil {
			t.names[k] = t.rename(k, order, name)
		}
	}
	return t
}

// members lists the ranks of each domain.
func members(domain []int32, count int) [][]Rank {
	size := make([]int, count)
	for _, d := range domain {
		size[d]++
	}
	store, all := make([]Rank, len(domain)), make([][]Rank, count)
	for d, n := range size {
		all[d], store = store[:0:n], store[n:]
	}
	for r, d := range domain {
		all[d] = append(all[d], Rank(r))
	}
	return all
}

// renumber makes ids dense: in the order of their parents, inside a parent in the
// order of their lowest ranks. So equal topologies have equal numbers whatever
// they were labelled with. order[d] is the id that became d.
func renumber(ids, parent []int32, parents int) (dense, order []int32) {
	found := make([]int32, slices.Max(ids)+1) // place in order of appearance, from 1
	var first []int32                         // the first rank of each
	start := make([]int32, parents+1)
	for r, id := range ids {
		if found[id] == 0 {
			first = append(first, int32(r))
			found[id] = int32(len(first))
			start[parent[r]+1]++
		}
	}
	for p := range parents {
		start[p+1] += start[p]
	}
	order = make([]int32, len(first))
	for _, r := range first {
		d := start[parent[r]]
		start[parent[r]]++
		order[d] = ids[r]
		found[ids[r]] = d
	}
	dense = make([]int32, len(ids))
	for r, id := range ids {
		dense[r] = found[id]
	}
	return dense, order
}

func changes(s []int32) (n int) {
	for i := 1; i < len(s); i++ {
		if s[i] != s[i-1] {
			n++
		}
	}
	return n
}

// rename returns nil if all names are the default ones.
func (t *Topology) rename(k int, order []int32, name func(k int, id int32) string) []string {
	names := make([]string, len(order))
	same := true
	for d, id := range order {
		names[d] = name(k, id)
		same = same && names[d] == t.name(k, int32(d))
	}
	if same {
		return nil
	}
	return names
}

// Size is the number of ranks.
func (t *Topology) Size() int { return len(t.domain[0]) }

// Depth is the number of levels, 1 to [MaxDepth].
func (t *Topology) Depth() int { return len(t.levels) }

// Level returns level k, counted from the inside.
func (t *Topology) Level(k int) Level { return t.levels[k] }

// Domains is the number of domains of level k; 1 for the outermost.
func (t *Topology) Domains(k int) int { return t.count[k] }

// IsUsed reports whether any two ranks share a domain of level k and none inside it.
func (t *Topology) IsUsed(k int) bool {
	inside := t.Size()
	if k > 0 {
		inside = t.Domains(k - 1)
	}
	return t.Domains(k) < inside
}

// Domain is the level-k domain that r lives in, 0 to Domains(k)-1. Level-0 domains
// are the innermost: the nodes of a two-level machine. Domains are numbered in
// the order of the domains around them, then of their lowest ranks.
func (t *Topology) Domain(r Rank, k int) int32 { return t.domain[k][r] }

// Meet is the innermost level on which two ranks share a domain.
func (t *Topology) Meet(a, b Rank) int {
	k := 0
	for t.domain[k][a] != t.domain[k][b] {
		k++
	}
	return k
}

// DomainName is the name the topology was given for that domain, else the level's
// name and the domain's number: node1. A subset keeps the names of the whole.
func (t *Topology) DomainName(r Rank, k int) string { return t.name(k, t.domain[k][r]) }

func (t *Topology) name(k int, d int32) string {
	if t.names[k] != nil {
		return t.names[k][d]
	}
	return fmt.Sprintf("%s%d", t.levels[k].Name, d)
}

// OneProcess is the topology with goroutines of one process as ranks: those of a node can read each
// other's memory in place.
func (t *Topology) OneProcess() *Topology {
	one := *t
	one.one, one.made = true, &made{}
	return &one
}

// IsOneProcess reports whether the ranks are goroutines of one process, as far as is known.
func (t *Topology) IsOneProcess() bool { return t.one }

// Equal reports whether both have the same levels, domains and names.
func (t *Topology) Equal(o *Topology) bool {
	return t.Alike(o) && slices.EqualFunc(t.names, o.names, slices.Equal[[]string])
}

// Alike reports whether both have the same levels and domains, whatever these are called.
func (t *Topology) Alike(o *Topology) bool {
	return slices.Equal(t.levels, o.levels) && slices.EqualFunc(t.domain, o.domain, slices.Equal[[]int32])
}

// Sub is the topology of an ordered subset: its rank j is ranks[j] of t. All levels stay. The error lists
// ranks given twice, or missing in t.
func (t *Topology) Sub(ranks []Rank) (*Topology, error) {
	if err := t.checkSubset(ranks); err != nil {
		return nil, fmt.Errorf("subset: %w", err)
	}
	ids := make([][]int32, t.Depth()-1)
	for k := range ids {
		ids[k] = make([]int32, len(ranks))
		for j, r := range ranks {
			ids[k][j] = t.domain[k][r]
		}
	}
	sub := assemble(t.levels, len(ranks), ids, t.name)
	sub.one = t.one
	return sub, nil
}

func (t *Topology) checkSubset(ranks []Rank) error {
	var c strictjson.Complaints
	if len(ranks) == 0 {
		c.Add("no ranks; at least one is needed")
	}
	seen := make([]bool, t.Size())
	for j, r := range ranks {
		switch {
		case r < 0 || int(r) >= t.Size():
			c.Add("place %d: rank %d; allowed are 0 to %d", j, r, t.Size()-1)
		case seen[r]:
			c.Add("place %d: rank %d was given before", j, r)
		default:
			seen[r] = true
		}
	}
	return c.Err()
}

// Dealt returns up to most ranks in the order in which they would be dealt to the nodes: the
// first of each node, then the second of each. Neighbours are on different nodes, then, where
// there are several.
func (t *Topology) Dealt(most int) []Rank {
	byNode := members(t.domain[t.node()], t.Nodes())
	var all []Rank
	for round := 0; len(all) < min(t.Size(), most); round++ {
		for _, ranks := range byNode {
			if round < len(ranks) {
				all = append(all, ranks[round])
			}
		}
	}
	return all[:min(len(all), most)]
}
