package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
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
	offset int // the end of the counted lines
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

// ReadJSON reads Open MPI's rules in JSON, and returns rules with the same decisions.
func ReadJSON(name, text string) (string, []Note, error) {
	root, err := parseJSON(name, []byte(text))
	if err != nil {
		return "", nil, err
	}
	b := &builder{complaints: complaints{name: name}}
	colls := root.member("collectives")
	if colls == nil || !colls.object {
		b.fail(root.line, `no "collectives", an object that has a list of rules for each collective`)
		return b.result()
	}
	for _, m := range colls.members {
		b.jsonCollective(m)
	}
	return b.result()
}

// jsonCollective writes the rules for a collective: the first fitting one of its lists, and in it the
// first fitting rule.
func (b *builder) jsonCollective(m member) {
	c := findCollective(m.key)
	switch {
	case !m.array:
		b.fail(m.line, "%s: expected a list of rules", m.key)
		return
	case c == nil && slices.Contains(slices.Collect(maps.Values(others)), m.key):
		b.note(m.line, "%s has no counterpart: left to others", m.key)
		return
	case c == nil:
		var known []string
		for i := range collectives {
			known = append(known, collectives[i].name)
		}
		b.fail(m.line, "unknown collective %q; Open MPI has %s", m.key, strings.Join(known, ", "))
		return
	}
	fmt.Fprintf(b, "%s:\n\t", c.head())
	if c.regular {
		b.WriteString("if not regular then default\n\tel")
	}
	for _, s := range m.items {
		list := s.member("rules")
		if list == nil || !list.array {
			b.fail(s.line, `no "rules", a list`)
			return
		}
		where := b.jsonBounds(s, "ranks", "comm_size")
		switch d := s.member("comm_rank_distribution"); {
		case d == nil || d.value == "any":
		case d.value == "one-per-node":
			where = append(where, "pernode = 1")
		case d.value == "single-node":
			where = append(where, "nodes = 1")
		default:
			b.fail(d.line, "comm_rank_distribution %v; allowed are any, one-per-node and single-node", d.value)
		}
		fmt.Fprintf(b, "if %s then (", all(where))
		for _, rule := range list.items {
			b.jsonRule(c, rule)
		}
		b.WriteString("default)\n\tel")
	}
	b.WriteString("if ranks >= 1 then default\n\n")
}

// jsonRule writes a rule of a list, up to its else.
func (b *builder) jsonRule(c *collective, rule *node) {
	where := b.jsonBounds(rule, c.size, "msg_size")
	alg := rule.member("alg")
	if alg == nil {
		b.fail(rule.line, `no "alg", an algorithm's number or name`)
		return
	}
	for _, m := range rule.members {
		switch m.key {
		case "msg_size_min", "msg_size_max", "alg", "faninout", "seg_size", "reqs":
		default:
			b.note(m.line, "%q is unknown: skipped, as Open MPI does", m.key)
		}
	}
	s := step{line: alg.line, word: fmt.Sprint(alg.value)}
	s.Fan = int(min(b.jsonNumber(rule, "faninout"), 1<<20))
	s.Segment = b.jsonNumber(rule, "seg_size")
	s.requests = b.jsonNumber(rule, "reqs")
	fmt.Fprintf(b, "if %s then %s else ", all(where), b.leaf(c, s))
}

// all joins conditions.
func all(where []string) string {
	if len(where) == 0 {
		return "ranks >= 1"
	}
	return strings.Join(where, " and ")
}

// jsonBounds returns conditions for KEY_min and KEY_max.
func (b *builder) jsonBounds(n *node, what, key string) (where []string) {
	if least := b.jsonNumber(n, key+"_min"); least > 0 {
		where = append(where, fmt.Sprintf("%s >= %d", what, least))
	}
	most := n.member(key + "_max")
	switch {
	case most == nil || most.value == "inf" && key == "msg_size":
		return where
	case most.value == "inf":
		b.note(most.line, "Open MPI takes %s_max \"inf\" for -1, so that nothing fits; leave it out", key)
		return append(where, never)
	}
	return append(where, fmt.Sprintf("%s <= %d", what, b.jsonNumber(n, key+"_max")))
}

// jsonNumber reads a number; 0 if it is left out.
func (b *builder) jsonNumber(n *node, key string) int64 {
	m := n.member(key)
	if m == nil {
		return 0
	}
	if number, is := m.value.(json.Number); is {
		if x, err := strconv.ParseInt(number.String(), 10, 64); err == nil && x >= 0 {
			return x
		}
	}
	b.fail(m.line, "%s %v; allowed are whole numbers from 0", key, m.value)
	return 0
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
