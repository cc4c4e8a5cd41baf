package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// For returns the machine with a link for each level of a topology and no others. A level without
// one gets the numbers of the next level outside that has one, or else of the next inside: a way to
// begin a file. A machine without any of the levels is an error.
func (m *Machine) For(t *levels.Topology) (*Machine, error) {
	known := make([]*Link, t.Depth())
	for k := range known {
		if l, err := m.Link(t.Level(k)); err == nil {
			known[k] = &l
		}
	}
	all := *m
	all.Links = nil
	for k := range known {
		var nearest *Link
		for _, l := range slices.Concat(known[k:], reversed(known[:k])) {
			if l != nil {
				nearest = l
				break
			}
		}
		if nearest == nil {
			_, err := m.Link(t.Level(k))
			return nil, err
		}
		link := *nearest
		link.Level = Symbol(t.Level(k).Symbol)
		all.Links = append(all.Links, link)
	}
	return &all, nil
}

// reversed returns links from the last to the first.
func reversed(links []*Link) []*Link {
	links = slices.Clone(links)
	slices.Reverse(links)
	return links
}

// FormatAll returns the file of a machine as [Machine.Format] does, with all keys: those that are 0
// too.
func (m *Machine) FormatAll() ([]byte, error) {
	if _, err := m.Format(); err != nil {
		return nil, err
	}
	all, err := allKeys(reflect.ValueOf(*m))
	if err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, all, "", "  "); err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// allKeys returns the JSON of a struct of this package with all its keys, in the order of its fields.
func allKeys(v reflect.Value) ([]byte, error) {
	var parts [][]byte
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		value, err := valueOf(v.Field(i))
		if err != nil {
			return nil, err
		}
		parts = append(parts, fmt.Appendf(nil, "%q:%s", key, value))
	}
	return slices.Concat([]byte("{"), bytes.Join(parts, []byte(",")), []byte("}")), nil
}

// valueOf returns the JSON of a field of a machine or a link.
func valueOf(v reflect.Value) ([]byte, error) {
	switch own := v.Interface().(type) {
	case Cores:
		return allKeys(v)
	case []Link:
		var parts [][]byte
		for _, l := range own {
			part, err := allKeys(reflect.ValueOf(l))
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]")), nil
	}
	return json.Marshal(v.Interface())
}

// Set returns the machine with other numbers, each written as in i.byte_ns=0.8, copy_byte_ns=0.2 or
// cores.per_node=4: a level's link, or the machine itself, and a key of its file. The method of its
// provenance names them. The error of an unknown level or key lists those that there are.
func (m *Machine) Set(words ...string) (*Machine, error) {
	changed := m
	for _, word := range words {
		var err error
		if changed, err = changed.set(word); err != nil {
			return nil, err
		}
	}
	if len(words) > 0 {
		changed.Provenance.Method += " with " + strings.Join(words, ", ")
	}
	return changed, nil
}

func (m *Machine) set(word string) (*Machine, error) {
	path, value, ok := strings.Cut(word, "=")
	if !ok || !json.Valid([]byte(value)) {
		return nil, fmt.Errorf("%q: write a key and a number, such as i.byte_ns=0.8 or copy_byte_ns=0.2", word)
	}
	data, err := m.FormatAll()
	if err != nil {
		return nil, err
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	var links []map[string]json.RawMessage
	var cores map[string]json.RawMessage
	if err := json.Unmarshal(file["links"], &links); err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	if err := json.Unmarshal(file["cores"], &cores); err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	where, key, inside := strings.Cut(path, ".")
	objects := map[string]map[string]json.RawMessage{"cores": cores}
	for i, l := range m.Links {
		objects[string(rune(l.Level))] = links[i]
	}
	object, fixed := objects[where], []string{"level"}
	if !inside {
		object, key, fixed = file, path, []string{"version", "provenance", "links", "cores"}
	}
	if object == nil {
		return nil, fmt.Errorf("%q: there is no %q; known are %s", word, where, strings.Join(slices.Sorted(maps.Keys(objects)), ", "))
	}
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(object)), func(k string) bool { return slices.Contains(fixed, k) })
	if !slices.Contains(known, key) {
		return nil, fmt.Errorf("%q: there is no key %q; known are %s", word, key, strings.Join(known, ", "))
	}
	object[key] = json.RawMessage(value)
	for name, part := range map[string]any{"links": links, "cores": cores} {
		if file[name], err = json.Marshal(part); err != nil {
			return nil, fmt.Errorf("machine: %w", err)
		}
	}
	if data, err = json.Marshal(file); err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	return Parse(word, data)
}
