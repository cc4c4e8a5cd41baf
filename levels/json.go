package levels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ParseJSON reads a topology file: either a spec for [Parse],
//
//	{"spec": "4x2/rr"}
//
// or levels from the inside out and for each rank the names of its domains, also
// from the inside out, without the outermost, which holds all ranks:
//
//	{"levels": [{"name": "numa", "symbol": "m"},
//	            {"name": "node", "symbol": "s"},
//	            {"name": "network", "symbol": "i"}],
//	 "ranks": [["numa0", "a"], ["numa1", "a"], ["numa0", "b"]]}
//
// Names need to be distinct only within the domain around them: a's numa0 is not
// b's. Unknown or repeated keys, repeated symbols and rows of the wrong length are
// errors. The error lists what is wrong, each with name:line.
func ParseJSON(name string, data []byte) (*Topology, error) {
	if name == "" {
		name = "topology"
	}
	j := reader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1, pos: position{file: name}}
	// With the syntax known to be right, what follows can only meet wrong types.
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		line := 1
		if at, ok := errors.AsType[*json.SyntaxError](err); ok {
			line += bytes.Count(data[:max(at.Offset-1, 0)], []byte("\n"))
		}
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	j.pos.whole = j.here()
	f := j.file()
	if err := j.err(); err != nil {
		return nil, err
	}
	if f.given == "spec" {
		t, err := Parse(f.spec)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, f.specLine, err)
		}
		return t, nil
	}
	return build(f.levels, f.ranks, checkName, itself, j.pos)
}

// file is what a topology file holds.
type file struct {
	given    string // its keys
	spec     string
	specLine int
	levels   []Level
	ranks    [][]string
}

// reader walks through JSON of right syntax and knows the line it is on.
type reader struct {
	complaints
	data []byte
	dec  *json.Decoder
	off  int // line is that of data[off]
	line int
	pos  position
}

func (j *reader) file() (f file) {
	keys := []string{"spec", "levels", "ranks"}
	given := j.object("a topology", keys, func(key string) {
		switch key {
		case "spec":
			f.specLine = j.here()
			f.spec = j.text(`"spec"`)
		case "levels":
			j.array(`"levels"`, func() {
				j.pos.levels = append(j.pos.levels, j.here())
				f.levels = append(f.levels, j.level())
			})
		case "ranks":
			j.array(`"ranks"`, func() {
				j.pos.ranks = append(j.pos.ranks, j.here())
				f.ranks = append(f.ranks, j.row(len(f.ranks)))
			})
		}
	})
	f.given = strings.Join(given, " and ")
	if f.given != "spec" && f.given != "levels and ranks" {
		j.add("%skeys %q; needed are either spec or levels and ranks", j.pos.rank(-1), f.given)
	}
	return f
}

func (j *reader) level() (l Level) {
	keys := []string{"name", "symbol"}
	j.object("a level", keys, func(key string) {
		line := j.here()
		s := j.text("a level's " + key)
		switch {
		case key == "name":
			l.Name = s
		case len(s) == 1:
			l.Symbol = s[0]
		default:
			j.add("%s:%d: symbol %q; allowed is one letter a to z", j.pos.file, line, clip(s))
		}
	})
	return l
}

func (j *reader) row(r int) (names []string) {
	j.array(fmt.Sprintf("rank %d", r), func() { names = append(names, j.text("a domain's name")) })
	return names
}

// object calls value for each key, before its value. It returns the keys that were
// given in the order of keys.
func (j *reader) object(what string, keys []string, value func(key string)) (given []string) {
	if !j.is('{', what, "an object with the keys "+strings.Join(keys, ", ")) {
		return nil
	}
	seen := map[string]bool{}
	j.token()
	for j.dec.More() {
		line := j.here()
		key, _ := j.token().(string)
		if seen[key] {
			j.add("%s:%d: key %q is given twice", j.pos.file, line, clip(key))
		}
		seen[key] = true
		if slices.Contains(keys, key) {
			value(key)
			continue
		}
		j.add("%s:%d: unknown key %q in %s; known are %s", j.pos.file, line, clip(key), what, strings.Join(keys, ", "))
		j.skip()
	}
	j.token()
	for _, key := range keys {
		if seen[key] {
			given = append(given, key)
		}
	}
	return given
}

func (j *reader) array(what string, value func()) {
	if !j.is('[', what, "an array") {
		return
	}
	j.token()
	for j.dec.More() {
		value()
	}
	j.token()
}

func (j *reader) text(what string) string {
	if !j.is('"', what, "a string") {
		return ""
	}
	s, _ := j.token().(string)
	return s
}

// is reports whether the next value begins with c; if not it complains and skips
// the value.
func (j *reader) is(c byte, what, want string) bool {
	line := j.here()
	if j.data[j.off] == c {
		return true
	}
	j.add("%s:%d: %s must be %s", j.pos.file, line, what, want)
	j.skip()
	return false
}

// here moves to the beginning of the next token and returns its line.
func (j *reader) here() int {
	to := int(j.dec.InputOffset())
	for to < len(j.data)-1 && strings.IndexByte(" \t\r\n,:", j.data[to]) >= 0 {
		to++
	}
	if to > j.off {
		j.line += bytes.Count(j.data[j.off:to], []byte("\n"))
		j.off = to
	}
	return j.line
}

// token and skip cannot fail: the syntax was checked before.
func (j *reader) token() json.Token {
	t, err := j.dec.Token()
	if err != nil {
		panic(fmt.Sprintf("levels: token in checked JSON: %v", err))
	}
	return t
}

func (j *reader) skip() {
	if err := j.dec.Decode(new(json.RawMessage)); err != nil {
		panic(fmt.Sprintf("levels: value in checked JSON: %v", err))
	}
}
