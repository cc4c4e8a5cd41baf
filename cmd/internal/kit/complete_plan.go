package kit

import (
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// planWords completes the last word of a plan: a key, or behind = its value. The plan may be one
// of several, for a collective.
func planWords(prefix string) (words []string) {
	at := strings.LastIndexAny(prefix, ",;:") + 1
	before, word := prefix[:at], prefix[at:]
	key, value, hasValue := strings.Cut(word, "=")
	if !hasValue {
		for _, key := range append(append([]string{"shape", "fs", "w", "order", "eager"}, levelSymbols()...), kindWords("")...) {
			words = append(words, before+key+"=")
		}
		if before == "" || strings.HasSuffix(before, ";") {
			for _, name := range Names(tasks.Requestable()) {
				words = append(words, before+name+":")
			}
		}
		return words
	}
	for _, v := range planValues(key, value) {
		words = append(words, before+key+"="+v)
	}
	return words
}

// sizeWords are usual sizes of segments.
var sizeWords = []string{"4KiB", "16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "512KiB", "1MiB"}

// planValues lists the values of a key of a plan.
func planValues(key, prefix string) []string {
	switch key {
	case "shape":
		return Names(tasks.Shapes())
	case "fs":
		return append([]string{"all"}, sizeWords...)
	case "w":
		return []string{"1", "2", "4", "8", "16", "32"}
	case "order":
		return []string{"tree"}
	case "eager":
		return []string{"0", "1KiB", "4KiB", "8KiB"}
	}
	return choiceValues(key, prefix)
}

// choiceValues lists submodules, their algorithms behind a slash, and inner segments behind
// another. For a task kind only algorithms able to do it are listed.
func choiceValues(key, prefix string) (values []string) {
	does := func(submodules.Algorithm) bool { return true }
	for _, c := range tasks.Collectives() {
		if suffix := c.Row().Suffix; suffix != "" && len(key) > 1 && key[1:] == suffix {
			does = func(a submodules.Algorithm) bool { return a.Does(c) }
		}
	}
	depth := strings.Count(prefix, "/")
	for _, s := range all.Submodules() {
		if depth == 0 {
			values = append(values, s.Name(), s.Name()+"/")
			continue
		}
		for _, a := range s.Algorithms() {
			name := s.Name() + "/" + a.Name
			if !does(a) {
				continue
			}
			values = append(values, name)
			for _, size := range sizeWords {
				if a.Inner && depth > 1 {
					values = append(values, name+"/"+size)
				}
			}
		}
	}
	return values
}

func submoduleNames() []string { return Words(all.Submodules(), submodules.Submodule.Name) }

// levelSymbols are those of the usual levels.
func levelSymbols() []string { return []string{string(levels.NodeSymbol), "i", "m"} }

// kindWords lists the task kinds of the two levels found on all machines.
func kindWords(string) (kinds []string) {
	for _, symbol := range levelSymbols()[:2] {
		for _, c := range tasks.Collectives() {
			if suffix := c.Row().Suffix; suffix != "" {
				kinds = append(kinds, symbol+suffix)
			}
		}
	}
	return kinds
}

// kindPairs completes ib+sb.
func kindPairs(prefix string) (pairs []string) {
	first, _, both := strings.Cut(prefix, "+")
	for _, kind := range kindWords("") {
		if both {
			pairs = append(pairs, first+"+"+kind)
		} else {
			pairs = append(pairs, kind+"+")
		}
	}
	return pairs
}
