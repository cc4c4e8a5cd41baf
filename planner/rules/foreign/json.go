package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/planner/rules"
)

// node is a value of JSON with its line. Members of objects are in their order.
type node struct {
	line    int
	value   any // string, json.Number, bool or nil of a scalar
	members []member
	items   []*node
	object  bool
	array   bool
}

type member struct {
	key  string
	line int
	*node
}

// mostNested bounds how deeply values may be nested.
const mostNested = 100

// parseJSON reads a value.
func parseJSON(name string, data []byte) (*node, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	r := &jsonReader{d, data, name, 0, 1}
	n, err := r.value(0)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("%s:%d: %w", name, 1+bytes.Count(data[:min(int(s.Offset), len(data))], []byte("\n")), err)
		}
		return nil, fmt.Errorf("%s:%d: %w", name, r.at(), err)
	}
	return n, nil
}

type jsonReader struct {
	*json.Decoder
	data   []byte
	name   string
	offset int // up to which lines are counted
	line   int
}

// at returns the line of the token read last.
func (r *jsonReader) at() int {
	to := int(r.InputOffset())
	r.line += bytes.Count(r.data[r.offset:to], []byte("\n"))
	r.offset = to
	return r.line
}

func (r *jsonReader) value(depth int) (*node, error) {
	t, err := r.Token()
	if err != nil {
		return nil, err
	}
	if depth > mostNested {
		return nil, fmt.Errorf("nested more than %d deep", mostNested)
	}
	n := &node{line: r.at(), value: t}
	switch t {
	case json.Delim('{'):
		n.value, n.object = nil, true
	case json.Delim('['):
		n.value, n.array = nil, true
	default:
		return n, nil
	}
	for r.More() {
		var key string
		line := 0
		if n.object {
			t, err := r.Token()
			if err != nil {
				return nil, err
			}
			key, _ = t.(string)
			line = r.at()
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if n.object {
			n.members = append(n.members, member{key, line, v})
		} else {
			n.items = append(n.items, v)
		}
	}
	_, err = r.Token()
	return n, err
}

// member returns the value of a key; nil: there is none.
func (n *node) member(key string) *node {
	for _, m := range n.members {
		if m.key == key {
			return m.node
		}
	}
	return nil
}

// ReadJSON reads Open MPI's rules in JSON, and returns rules that decide the same.
func ReadJSON(name, text string) (string, []Note, error) {
	root, err := parseJSON(name, []byte(text))
	if err != nil {
		return "", nil, err
	}
	colls := root.member("collectives")
	if colls == nil || !colls.object {
		return "", nil, fmt.Errorf(`%s:%d: no "collectives", an object that has a list of rules for each collective`, name, root.line)
	}
	j := &jsonRules{builder{library: OpenMPI}, name}
	for _, m := range colls.members {
		if err := j.collective(m); err != nil {
			return "", nil, err
		}
	}
	return j.String(), j.notes, nil
}

type jsonRules struct {
	builder
	name string
}

func (j *jsonRules) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", j.name, line, fmt.Sprintf(format, args...))
}

// collective writes the rules for a collective: the first of its lists that fits, and in it the
// first rule that does.
func (j *jsonRules) collective(m member) error {
	if !m.array {
		return j.errorf(m.line, "%s: expected a list of rules", m.key)
	}
	c := named(m.key)
	if c == nil {
		for _, other := range others {
			if other == m.key {
				j.note(m.line, "%s has no counterpart: left to others", other)
				return nil
			}
		}
		return j.errorf(m.line, "unknown collective %q; Open MPI has %s", m.key, strings.Join(names(), ", "))
	}
	fmt.Fprintf(j, "%s:\n\t", c.head())
	if c.regular {
		j.WriteString("if not regular then default\n\tel")
	}
	for _, s := range m.items {
		list := s.member("rules")
		if list == nil || !list.array {
			return j.errorf(s.line, `no "rules", a list`)
		}
		where, err := j.bounds(s, "ranks", "comm_size")
		if err != nil {
			return err
		}
		switch d := s.member("comm_rank_distribution"); {
		case d == nil || d.value == "any":
		case d.value == "one-per-node":
			where = append(where, "pernode = 1")
		case d.value == "single-node":
			where = append(where, "nodes = 1")
		default:
			return j.errorf(d.line, "comm_rank_distribution %v; allowed are any, one-per-node and single-node", d.value)
		}
		fmt.Fprintf(j, "if %s then (", all(where))
		for _, rule := range list.items {
			if err := j.rule(c, rule); err != nil {
				return err
			}
		}
		j.WriteString("default)\n\tel")
	}
	j.WriteString("if ranks >= 1 then default\n\n")
	return nil
}

// rule writes a rule of a list, up to its else.
func (j *jsonRules) rule(c *collective, rule *node) error {
	where, err := j.bounds(rule, c.size, "msg_size")
	if err != nil {
		return err
	}
	alg := rule.member("alg")
	if alg == nil {
		return j.errorf(rule.line, `no "alg", an algorithm's number or name`)
	}
	for _, m := range rule.members {
		switch m.key {
		case "msg_size_min", "msg_size_max", "alg", "faninout", "seg_size", "reqs":
		default:
			j.note(m.line, "%q is unknown: skipped, as Open MPI does", m.key)
		}
	}
	s := step{line: alg.line, word: fmt.Sprint(alg.value)}
	fan, err := j.number(rule, "faninout", 0)
	if err != nil {
		return err
	}
	s.Fan = int(min(fan, 1<<20))
	if s.Segment, err = j.number(rule, "seg_size", 0); err != nil {
		return err
	}
	if s.requests, err = j.number(rule, "reqs", 0); err != nil {
		return err
	}
	fmt.Fprintf(j, "if %s then %s else ", all(where), j.leaf(c, s))
	return nil
}

// all joins conditions.
func all(where []string) string {
	if len(where) == 0 {
		return "ranks >= 1"
	}
	return strings.Join(where, " and ")
}

// bounds returns conditions for KEY_min and KEY_max.
func (j *jsonRules) bounds(n *node, what, key string) (where []string, err error) {
	least, err := j.number(n, key+"_min", 0)
	if err != nil {
		return nil, err
	}
	if least > 0 {
		where = append(where, fmt.Sprintf("%s >= %d", what, least))
	}
	most := n.member(key + "_max")
	switch {
	case most == nil || most.value == "inf" && key == "msg_size":
		return where, nil
	case most.value == "inf":
		j.note(most.line, "Open MPI takes %s_max \"inf\" for -1, so that nothing fits; leave it out", key)
		return append(where, "ranks < 0"), nil
	}
	n64, err := j.number(n, key+"_max", 0)
	return append(where, fmt.Sprintf("%s <= %d", what, n64)), err
}

// number reads a number that may be left out.
func (j *jsonRules) number(n *node, key string, usual int64) (int64, error) {
	m := n.member(key)
	if m == nil {
		return usual, nil
	}
	number, is := m.value.(json.Number)
	if is {
		if x, err := strconv.ParseInt(number.String(), 10, 64); err == nil && x >= 0 {
			return x, nil
		}
	}
	return 0, j.errorf(m.line, "%s %v; allowed are whole numbers from 0", key, m.value)
}

// names lists the collectives with a counterpart.
func names() []string {
	all := make([]string, len(collectives))
	for i, c := range collectives {
		all[i] = c.name
	}
	return all
}

// WriteJSON writes rules as Open MPI's rules in JSON, as [WriteClassic] does.
func WriteJSON(b *rules.Base, l Layout) (string, []Note, error) {
	type rule struct {
		Min     int64  `json:"msg_size_min"`
		Max     *int64 `json:"msg_size_max,omitempty"`
		Alg     string `json:"alg"`
		Fan     int    `json:"faninout,omitempty"`
		Segment int64  `json:"seg_size,omitempty"`
	}
	type list struct {
		Min   int64  `json:"comm_size_min"`
		Max   *int64 `json:"comm_size_max,omitempty"`
		Rules []rule `json:"rules"`
	}
	tables, notes := l.tables(b, OpenMPI, false)
	all := map[string][]list{}
	for _, t := range tables {
		for k, s := range t.sections {
			one := list{Min: s.ranks, Rules: []rule{}}
			if k+1 < len(t.sections) {
				last := t.sections[k+1].ranks - 1
				one.Max = &last
			}
			for i, st := range s.steps {
				if st.word == "0" {
					continue
				}
				r, err := Find(OpenMPI, t.of.name, st.word)
				if err != nil {
					return "", nil, err
				}
				add := rule{Min: st.bytes, Alg: r.Name, Fan: st.Fan, Segment: st.Segment}
				if i+1 < len(s.steps) {
					last := s.steps[i+1].bytes - 1
					add.Max = &last
				}
				one.Rules = append(one.Rules, add)
			}
			all[t.of.name] = append(all[t.of.name], one)
		}
	}
	data, err := json.MarshalIndent(map[string]any{"rule_file_version": 3, "module": "tuned", "collectives": all}, "", "  ")
	return string(data) + "\n", notes, err
}
