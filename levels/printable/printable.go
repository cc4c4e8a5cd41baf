// Package printable makes text of others fit for a terminal and for one line: names of hosts and programs,
// and what files hold. Who writes them could else move the cursor, or add lines that look like ours. It never
// quotes: what is plain text stays as it is.
//
//	name = printable.Text(name)
//	printable.All(&snapshot) // all its strings
package printable

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with a question mark for each character that a terminal doesn't show as one: controls, line
// ends among them, those that change the direction of writing, and what is no UTF-8.
func Text(s string) string { return strings.Map(shown, s) }

// Lines is [Text] for text of several lines: line ends and tabs stay.
func Lines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return shown(r)
	}, s)
}

func shown(r rune) rune {
	if r == utf8.RuneError || !unicode.IsGraphic(r) {
		return '?'
	}
	return r
}

// All makes each string in what a pointer points at [Text]: those in exported fields, in slices, arrays,
// pointers and values of maps. Keys of maps stay.
func All(pointer any) { walk(reflect.ValueOf(pointer).Elem()) }

func walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(Text(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			walk(field)
		}
	case reflect.Slice, reflect.Array:
		if !hasText(v.Type().Elem().Kind()) {
			return // steps of a trace are many
		}
		for i := range v.Len() {
			walk(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			walk(value)
			v.SetMapIndex(key, value)
		}
	}
}

// hasText reports whether a value of a kind may hold strings.
func hasText(k reflect.Kind) bool {
	switch k {
	case reflect.String, reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		return true
	}
	return false
}
