// Package strictjson reads JSON files written or edited by people: topologies, books
// of costs, decision tables. It names the file and the line of each fault, and
// reports up to [MaxComplaints] of them at once. An unknown key, a key given twice,
// a missing key and a value of the wrong type are faults.
//
// It never guesses a default, and it never stops at the first fault: after a value of
// the wrong type reading goes on behind that value. The package's example shows all
// of it.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Reader reads JSON of right syntax, value by value.
type Reader struct {
	Complaints
	name string
	data []byte
	dec  *json.Decoder
	off  int // start of the last token looked for: 0 <= off <= len(data)
	line int // line of data[off], counted from 1
}

// NewReader returns a reader of data, one JSON value. name begins each
// complaint. The error is the first mistake in the syntax.
func NewReader(name string, data []byte) (*Reader, error) {
	// With the syntax known to be right, later reads can only meet wrong types.
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		line := 1
		if at, ok := errors.AsType[*json.SyntaxError](err); ok {
			line += bytes.Count(data[:max(at.Offset-1, 0)], []byte("\n"))
		}
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	return &Reader{name: name, data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}, nil
}

// Complain adds a complaint about a line. [Complaints.Add] adds one that says itself
// where it belongs.
func (r *Reader) Complain(line int, format string, args ...any) {
	r.Add("%s:%d: %w", r.name, line, fmt.Errorf(format, args...))
}

// Line moves to the beginning of the next key or value and returns its line.
func (r *Reader) Line() int {
	to := int(r.dec.InputOffset())
	for to < len(r.data)-1 && strings.IndexByte(" \t\r\n,:", r.data[to]) >= 0 {
		to++
	}
	if to > r.off {
		r.line += bytes.Count(r.data[r.off:to], []byte("\n"))
		r.off = to
	}
	return r.line
}

// Object reads an object. It calls value after each known key; value must read the
// key's value. Known are keys, and the first needed of them must be given. what
// names the object in complaints. Object returns the known keys that were given, in
// the order of keys.
func (r *Reader) Object(what string, keys []string, needed int, value func(key string)) (given []string) {
	line := r.Line()
	if !r.enter('{', what, "an object with the keys "+strings.Join(keys, ", ")) {
		return nil
	}
	seen := map[string]bool{}
	for r.dec.More() {
		at := r.Line()
		key, _ := r.token().(string)
		if seen[key] {
			r.Complain(at, "key %q is given twice", Clip(key))
		}
		seen[key] = true
		if slices.Contains(keys, key) {
			value(key)
			continue
		}
		r.Complain(at, "unknown key %q in %s; known are %s", Clip(key), what, strings.Join(keys, ", "))
		r.Raw()
	}
	r.token()
	for i, key := range keys {
		if seen[key] {
			given = append(given, key)
		} else if i < needed {
			r.Complain(line, "key %q is missing; %s needs %s", key, what, strings.Join(keys[:needed], ", "))
		}
	}
	return given
}

// Array reads an array. It calls value before each element; value must read the
// element. what names the array in complaints.
func (r *Reader) Array(what string, value func()) {
	if !r.enter('[', what, "an array") {
		return
	}
	for r.dec.More() {
		value()
	}
	r.token()
}

// Text reads a string; "" after a complaint. what names it in complaints.
func (r *Reader) Text(what string) string {
	if !r.begins('"', what, "a string") {
		return ""
	}
	s, _ := r.token().(string)
	return s
}

// Decode reads a value into v as [json.Unmarshal] does, but takes no key unknown to v's
// type. It reports whether the value fitted. what names it in complaints; an
// error of v's own methods says itself what it is about.
func (r *Reader) Decode(v any, what string) bool {
	line := r.Line()
	raw := r.Raw()
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	err := strict.Decode(v)
	if err == nil {
		return true
	}
	below := func(offset int) int {
		return line + bytes.Count(raw[:min(max(offset, 0), len(raw))], []byte("\n"))
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if field := jsonPath(wrong.Field); field != "" {
			what = fmt.Sprintf("%s: %q", what, field)
		}
		r.Complain(below(int(wrong.Offset)-1), "%s is %s %s", what, article(wrong.Value), wrong.Value)
	} else if _, field, ok := strings.Cut(err.Error(), "unknown field "); ok {
		r.Complain(below(bytes.Index(raw, []byte(field))), "%s: unknown key %s", what, field)
	} else {
		r.Complain(line, "%w", err)
	}
	return false
}

// jsonPath returns the keys of a path of [json.UnmarshalTypeError]. That path also
// has the names of embedded Go types, and a map's key twice in place of a key in it.
func jsonPath(field string) string {
	keys := strings.Split(field, ".")
	keys = slices.DeleteFunc(keys, func(key string) bool { return key != "" && 'A' <= key[0] && key[0] <= 'Z' })
	return strings.Join(slices.Compact(keys), ".")
}

// article returns the article of a kind of JSON value.
func article(kind string) string {
	if kind == "array" || kind == "object" {
		return "an"
	}
	return "a"
}

// Raw reads a value without looking into it.
func (r *Reader) Raw() json.RawMessage {
	var raw json.RawMessage
	if err := r.dec.Decode(&raw); err != nil {
		panic(fmt.Sprintf("strictjson: value in checked JSON: %v", err))
	}
	return raw
}

// enter reads the bracket that an object or array begins with. It reports whether
// there was one.
func (r *Reader) enter(bracket byte, what, want string) bool {
	if !r.begins(bracket, what, want) {
		return false
	}
	r.token()
	return true
}

// begins reports whether the next value begins with c. If not it complains and
// passes the value over.
func (r *Reader) begins(c byte, what, want string) bool {
	line := r.Line()
	if r.data[r.off] == c {
		return true
	}
	r.Complain(line, "%s must be %s", what, want)
	r.Raw()
	return false
}

// token can't fail: the syntax was checked before.
func (r *Reader) token() json.Token {
	t, err := r.dec.Token()
	if err != nil {
		panic(fmt.Sprintf("strictjson: token in checked JSON: %v", err))
	}
	return t
}
