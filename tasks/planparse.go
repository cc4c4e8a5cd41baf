package tasks

import (
	"fmt"
	"strconv"
	"strings"
)

// ParsePlan reads one plan: words separated by commas, each key=value. Keys are shape, fs, w,
// order, eager, a level's symbol or a task kind; values of levels and kinds are
// submodule[/algorithm][/inner segment][/number]. Missing words stay zero.
func ParsePlan(s string) (Plan, error) {
	var p Plan
	for _, word := range strings.Split(s, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return Plan{}, fmt.Errorf("plan %q: %q is not key=value; keys are shape, fs, w, order, eager, a level (i, s, …) or a task kind (ib, sr, …)", s, word)
		}
		if err := p.parseWord(key, value); err != nil {
			return Plan{}, fmt.Errorf("plan %q: %w", s, err)
		}
	}
	return p, nil
}

func (p *Plan) parseWord(key, value string) (err error) {
	switch key {
	case "shape":
		p.Shape, err = parseShape(value)
		return err
	case "fs":
		p.Segment, err = ParseBytes(value)
		if err == nil && p.Segment == 0 {
			err = fmt.Errorf("fs=%s: a segment has at least one byte", value)
		}
		return err
	case "eager":
		p.Eager, err = ParseBytes(value)
		return err
	case "order":
		if value != "tree" {
			return fmt.Errorf("order=%s: the only order is tree", value)
		}
		p.Order = TreeOrder
		return nil
	case "w": // also the symbol of the site level, whose choice begins with a letter
		if value == "" || !isLetter(value[0]) {
			p.Window, err = strconv.Atoi(value)
			if err != nil || p.Window < 1 || p.Window > MaxSegments {
				return fmt.Errorf("w=%s: a window is 1 to %d segments", value, MaxSegments)
			}
			return nil
		}
	}
	_, isKind := parseKind(key)
	if !isKind && (len(key) != 1 || !isLetter(key[0])) {
		return fmt.Errorf("unknown key %q; keys are shape, fs, w, order, eager, a level (i, s, …) or a task kind (ib, sr, …)", key)
	}
	c, err := parseChoice(value)
	if err != nil {
		return fmt.Errorf("%s=%s: %w", key, value, err)
	}
	*p = p.Set(key, c)
	return nil
}

func parseShape(s string) (Shape, error) {
	var known []string
	for _, shape := range Shapes() {
		if shape.String() == s {
			return shape, nil
		}
		known = append(known, shape.String())
	}
	return 0, fmt.Errorf("unknown shape %q; known are %s", s, strings.Join(known, ", "))
}

func parseChoice(s string) (c Choice, err error) {
	parts := strings.Split(s, "/")
	// A submodule begins with a letter because w=2 is a window.
	if len(parts) > 4 || parts[0] == "" || !isLetter(parts[0][0]) {
		return c, fmt.Errorf("write submodule[/algorithm][/inner segment][/number]")
	}
	for _, word := range parts[:min(len(parts), 2)] {
		if i := strings.IndexFunc(word, notInName); i >= 0 {
			return c, fmt.Errorf("name %q: allowed are a to z, digits, '.', '_' and '-'", word)
		}
	}
	c.Submodule = parts[0]
	if len(parts) > 1 {
		c.Algorithm = parts[1]
	}
	if len(parts) > 2 && (len(parts) == 3 || parts[2] != "") {
		c.Inner, err = ParseBytes(parts[2])
	}
	if len(parts) > 3 && err == nil {
		if c.N, err = strconv.Atoi(parts[3]); err != nil || c.N < 2 || c.N > MaxNumber {
			return c, fmt.Errorf("number %q: an algorithm's number is 2 to %d", parts[3], MaxNumber)
		}
	}
	return c, err
}

// MaxNumber is the largest number for an algorithm.
const MaxNumber = 1024

// notInName finds the characters outside names of submodules and algorithms: they separate words
// of plans.
func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}
