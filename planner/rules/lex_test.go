package rules

import (
	"strings"
	"testing"
)

// Each ASCII sign is part of a word, or it isn't; a minus is before a letter.
func TestSignsOfWords(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for c := range byte(128) {
		text := "x" + string(rune(c)) // alone at the end
		for after, inside := range map[string]bool{"": false, "1": false, "a": c == '-', "Z": c == '-'} {
			inside = inside || strings.IndexByte(letters+"0123456789_", c) >= 0
			l := lexer{text: text + after}
			if got := l.wordEnd(1) > 1; got != inside {
				t.Errorf("%q before %q is part of a word: %t", c, after, got)
			}
		}
		if got := isLetter(c); got != (strings.IndexByte(letters, c) >= 0) {
			t.Errorf("%q is a letter: %t", c, got)
		}
	}
}
