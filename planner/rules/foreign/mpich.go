package foreign

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/planner/rules"
)

// mpichTable has the decisions of MPICH 4.0.2 itself. A written file has all of them: without one of
// the collectives MPICH ends the program.
//
//go:embed mpich-4.0.2.txt
var mpichTable string

// mpichOwn returns a part of [mpichTable] as selection JSON.
func mpichOwn(compositions bool) []byte {
	part, leaf := 1, "algorithm="
	if compositions {
		part, leaf = 2, "composition="
	}
	var b strings.Builder
	var open []string // keys of the open objects
	for line := range strings.Lines(strings.Split(mpichTable, "\n\n")[part]) {
		path := strings.Fields(line)
		path[0] = "collective=" + path[0]
		last := len(path) - 1
		alike := 0
		for alike < min(len(open), last) && open[alike] == path[alike] {
			alike++
		}
		b.WriteString(strings.Repeat("}", len(open)-alike))
		if b.Len() > 0 {
			b.WriteString(",")
		} else {
			b.WriteString("{")
		}
		for _, key := range path[alike:last] {
			fmt.Fprintf(&b, "%q:{", key)
		}
		fmt.Fprintf(&b, "%q:{}", leaf+path[last])
		open = path[:last]
	}
	return []byte(b.String() + strings.Repeat("}", len(open)+1))
}

// ReadMPICH reads MPICH's selection JSON, of algorithms or of compositions, and returns rules
// with the same decisions for calls that are not in place, in programs of one thread.
func ReadMPICH(name, text string) (string, []Note, error) {
	root, err := parseJSON(name, []byte(text))
	if err != nil {
		return "", nil, err
	}
	m := &mpichRules{builder: builder{complaints: complaints{name: name}}}
	if !root.object {
		m.fail(root.line, "expected an object of collective=NAME")
	}
	for _, one := range root.members {
		coll, is := strings.CutPrefix(strings.ReplaceAll(one.key, " ", ""), "collective=")
		if !is {
			m.fail(one.line, "%q; expected collective=NAME", one.key)
		}
		if m.of = findCollective(coll); m.of == nil {
			if !strings.HasPrefix(coll, "i") && !strings.HasPrefix(coll, "neighbor") {
				m.note(one.line, "%s has no counterpart: left to others", coll)
			}
			continue
		}
		body := m.tree(one.node, 1)
		fmt.Fprintf(m, "%s: ", m.of.head())
		if m.of.regular {
			m.WriteString("if not regular then default else ")
		}
		m.WriteString(body + "\n\n")
	}
	return m.result()
}

// mpichRules writes the rules of a file of MPICH.
type mpichRules struct {
	builder
	of *collective // at work
}

// mostTrees bounds how deep conditions are nested: rules have a limit too.
const mostTrees = 50

// tree returns the rules for a tree.
func (m *mpichRules) tree(n *node, depth int) string {
	if !n.object || depth > mostTrees {
		m.fail(n.line, "expected conditions or an algorithm, nested up to %d deep", mostTrees)
		return ""
	}
	var b strings.Builder
	arms := 0
	for _, one := range n.members {
		key := strings.ReplaceAll(one.key, " ", "")
		for _, kind := range []string{"algorithm=", "composition="} {
			if name, is := strings.CutPrefix(key, kind); is {
				return m.algorithm(name, one)
			}
		}
		where := m.where(key, one.line)
		if where == never {
			continue
		}
		body := m.tree(one.node, depth+1)
		if where == "" { // the members behind it are never asked
			if arms == 0 {
				return body
			}
			return "(" + b.String() + " else " + body + ")"
		}
		if arms > 0 {
			b.WriteString(" el")
		}
		arms++
		b.WriteString("if " + where + " then " + body)
	}
	if arms == 0 {
		return "default"
	}
	return "(" + b.String() + " else default)"
}

// algorithm returns the plan of a leaf.
func (m *mpichRules) algorithm(name string, at member) string {
	r, err := Find(MPICH, m.of.name, name)
	if err != nil {
		m.note(at.line, "%s: left to others", name)
		return "default"
	}
	for _, p := range at.members {
		m.note(p.line, "%s: %s has no counterpart", name, p.key)
	}
	return leaf(r, settings{}, at.line, &m.notes)
}

// never is a condition without requests.
const never = "ranks < 0"

// yesNo are MPICH's conditions with yes or no.
var yesNo = map[string]string{
	"is_node_consecutive": "ordered", "is_commutative": "commutative", "is_op_built_in": "builtin", "is_block_regular": "regular",
}

// numbers are MPICH's numbers.
var numbers = map[string]string{
	"comm_size": "ranks", "comm_avg_ppn": "ranks / nodes", "avg_msg_size": "bytes", "total_msg_size": "total", "count": "count",
}

// where returns a condition as rules have it; empty: it always holds.
func (m *mpichRules) where(key string, line int) string {
	at := strings.IndexAny(key, "<=")
	if key == "any" || strings.HasSuffix(key, "=any") {
		return ""
	}
	if at > 0 {
		name, sign := key[:at], "<="
		value, is := strings.CutPrefix(key[at:], "<=")
		if !is {
			sign, value = key[at:at+1], key[at+1:]
		}
		if what, is := yesNo[name]; is && (value == "yes" || value == "no") && sign == "=" {
			return map[string]string{"yes": what, "no": "not " + what}[value]
		}
		if what, is := numbers[name]; is {
			if n, err := strconv.ParseUint(value, 10, 31); err == nil {
				return fmt.Sprintf("%s %s %d", what, sign, n)
			}
		}
	}
	switch key {
	case "comm_type=intra", "is_multi_threaded=no", "is_sendbuf_inplace=no":
		return ""
	case "comm_type=inter":
		return never
	case "is_multi_threaded=yes", "is_sendbuf_inplace=yes":
		m.note(line, "%s is nothing to decide by here: passed over", key)
		return never
	case "comm_hierarchy=node_roots", "comm_hierarchy=node":
		m.note(line, "%s is of communicators inside MPICH: passed over", key)
		return never
	case "comm_hierarchy=parent":
		return "nodes > 1 and pernode > 1"
	case "comm_hierarchy=flat":
		return "(nodes = 1 or pernode = 1)"
	case "comm_size=pow2":
		return ifPower
	case "comm_size=node_comm_size":
		return "nodes = 1"
	case "count<pow2":
		return "count < near(ranks, 1, ranks)"
	}
	m.fail(line, "unknown condition %q", key)
	return never
}

// WriteMPICH writes rules as MPICH's selection JSON, of algorithms or of compositions. The file
// is complete: requests that rules leave open go by MPICH 4.0.2. Algorithms that need a power of
// two, a predefined operation or enough elements get these conditions.
//
// With several ranks a node MPICH takes a bcast, a reduce and an allreduce apart by the file of
// compositions, and asks the other file for the nodes' leaders. So its number of ranks is the number
// of nodes there.
func WriteMPICH(b *rules.Base, l Layout, compositions bool) (string, []Note, error) {
	own, err := parseJSON("mpich", mpichOwn(compositions))
	if err != nil {
		return "", nil, err
	}
	tables, notes := l.tables(b, MPICH, compositions)
	w := &mpichWriter{compositions: compositions}
	for i, one := range own.members {
		if i > 0 {
			w.WriteString(",\n")
		} else {
			w.WriteString("{\n")
		}
		w.collective(one, tables)
	}
	w.WriteString("\n}\n")
	return w.String(), notes, nil
}

// mpichWriter writes a file of MPICH.
type mpichWriter struct {
	strings.Builder
	compositions bool
}

// collective writes a collective: MPICH's own tree if no table is of it.
func (w *mpichWriter) collective(own member, tables []table) {
	name := strings.TrimPrefix(own.key, "collective=")
	for _, t := range tables {
		if t.of.name != name {
			continue
		}
		intra := own.member("comm_type=intra")
		if intra == nil {
			intra = own.node
		}
		fmt.Fprintf(w, " %q: {\"comm_type=intra\": {", own.key)
		for k, s := range t.sections {
			if k > 0 {
				w.WriteByte(',')
			}
			if k+1 < len(t.sections) {
				fmt.Fprintf(w, "\n  \"comm_size<=%d\": ", t.sections[k+1].ranks-1)
			} else {
				w.WriteString("\n  \"comm_size=any\": ")
			}
			w.sizes(s.steps, t.of, intra)
		}
		w.WriteByte('}')
		if inter := own.member("comm_type=inter"); inter != nil {
			w.WriteString(",\n  \"comm_type=inter\": " + printTree(inter))
		}
		w.WriteByte('}')
		return
	}
	fmt.Fprintf(w, " %q: %s", own.key, printTree(own.node))
}

// sizes writes the steps of a section, and own in place of those without an algorithm.
func (w *mpichWriter) sizes(steps []step, of *collective, own *node) {
	key := "avg_msg_size"
	if of.size == "total" {
		key = "total_msg_size"
	}
	if len(steps) == 1 {
		w.leaf(steps[0], of.name, own)
		return
	}
	w.WriteByte('{')
	for i, s := range steps {
		if i > 0 {
			w.WriteString(", ")
		}
		if i+1 < len(steps) {
			fmt.Fprintf(w, "\"%s<=%d\": ", key, steps[i+1].bytes-1)
		} else {
			fmt.Fprintf(w, "\"%s=any\": ", key)
		}
		w.leaf(s, of.name, own)
	}
	w.WriteByte('}')
}

// leaf writes an algorithm with its conditions.
func (w *mpichWriter) leaf(s step, coll string, own *node) {
	r, err := Find(MPICH, coll, s.word)
	if err != nil || s.word == "0" || strings.Contains(r.Name, "composition") != w.compositions {
		w.WriteString(printTree(own))
		return
	}
	closing := ""
	needs := func(key, otherwise string) {
		fmt.Fprintf(w, "{%q: ", key)
		closing = fmt.Sprintf(", %q: %s}", otherwise, printTree(own)) + closing
	}
	if coll == "alltoall" || coll == "alltoallv" {
		needs("is_sendbuf_inplace=no", "is_sendbuf_inplace=yes")
	}
	if r.Where == ifPower {
		needs("comm_size=pow2", "comm_size=any")
	}
	if strings.HasSuffix(r.Name, "reduce_scatter_allgather") || strings.HasSuffix(r.Name, "reduce_scatter_gather") {
		needs("is_op_built_in=yes", "is_op_built_in=no")
		fmt.Fprintf(w, "{\"count<pow2\": %s, \"count=any\": ", printTree(own))
		closing = "}" + closing
	}
	if coll == "reduce_scatter" || coll == "reduce_scatter_block" || w.compositions && strings.HasSuffix(coll, "reduce") {
		needs("is_commutative=yes", "is_commutative=no")
	}
	kind := "algorithm"
	if w.compositions {
		kind = "composition"
	}
	fmt.Fprintf(w, "{\"%s=%s\": {}}%s", kind, r.Name, closing)
}

// printTree returns a tree of objects as JSON.
func printTree(n *node) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range n.members {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q: %s", m.key, printTree(m.node))
	}
	b.WriteByte('}')
	return b.String()
}
