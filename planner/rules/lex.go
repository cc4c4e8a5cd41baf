package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	end kind = iota
	word
	number
	named  // $name
	symbol // an operator or a bracket
	quoted // a text in quotation marks
)

// token is a word, a number or a sign.
type token struct {
	kind kind
	text string
	at   int // bytes from the beginning
}

// describe names the token in a complaint.
func (t token) describe() string {
	switch t.kind {
	case end:
		return "the end of the file"
	case quoted:
		return "a text"
	}
	return fmt.Sprintf("%q", clip(t.text))
}

// comment is one with its place.
type comment struct {
	text  string // with its #
	at    int
	alone bool // nothing is before it on its line
}

// newLexer returns a lexer at the beginning of a text.
func newLexer(name, text string) *lexer {
	l := &lexer{name: name, text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			l.lines = append(l.lines, i+1)
		}
	}
	return l
}

// lexer cuts a text into tokens, one at a time.
type lexer struct {
	name, text string
	at         int   // of the next token
	lines      []int // their beginnings
	comments   []comment
}

// position returns the line and the column of a place, from 1.
func (l *lexer) position(at int) (line, column int) {
	line, _ = slices.BinarySearch(l.lines, at+1)
	return line, 1 + utf8.RuneCountInString(l.text[l.lines[line-1]:at])
}

// errorf complains of a place.
func (l *lexer) errorf(at int, format string, args ...any) error {
	line, column := l.position(at)
	return &Error{File: l.name, Line: line, Column: column, Message: fmt.Sprintf(format, args...)}
}

// skip goes past blanks and comments.
func (l *lexer) skip() {
	for l.at < len(l.text) {
		switch c := l.text[l.at]; c {
		case ' ', '\t', '\r', '\n':
			l.at++
		case '#':
			stop := strings.IndexByte(l.text[l.at:], '\n')
			if stop < 0 {
				stop = len(l.text) - l.at
			}
			begin := strings.LastIndexByte(l.text[:l.at], '\n') + 1
			if n := len(l.comments); n == 0 || l.comments[n-1].at < l.at { // not seen before
				l.comments = append(l.comments, comment{
					strings.TrimRight(l.text[l.at:l.at+stop], " \t\r"), l.at, strings.TrimSpace(l.text[begin:l.at]) == "",
				})
			}
			l.at += stop
		default:
			return
		}
	}
}

// signs are the operators and brackets, the longer ones first.
var signs = []string{"<=", ">=", "!=", "==", "<", ">", "=", "+", "-", "*", "/", "(", ")", "{", "}", ",", ";", ":"}

// next returns the next token and goes past it.
func (l *lexer) next() (token, error) {
	l.skip()
	begin := l.at
	if begin == len(l.text) {
		return token{end, "", begin}, nil
	}
	take := func(k kind, stop int) (token, error) {
		l.at = stop
		return token{k, l.text[begin:stop], begin}, nil
	}
	c := l.text[begin]
	switch {
	case isLetter(c):
		return take(word, l.wordEnd(begin))
	case isDigit(c):
		stop := begin
		for stop < len(l.text) && (isDigit(l.text[stop]) || isLetter(l.text[stop]) || l.text[stop] == '.') {
			stop++
		}
		return take(number, stop)
	case c == '$':
		if stop := l.wordEnd(begin + 1); stop > begin+1 && isLetter(l.text[begin+1]) {
			return take(named, stop)
		}
		return token{}, l.errorf(begin, "$ without a name; write a named value such as $small")
	case c == '"':
		stop := strings.IndexAny(l.text[begin+1:], "\"\n")
		if stop < 0 || l.text[begin+1+stop] == '\n' {
			return token{}, l.errorf(begin, "a text without an end; it ends with \" on the same line")
		}
		return take(quoted, begin+stop+2)
	}
	for _, s := range signs {
		if strings.HasPrefix(l.text[begin:], s) {
			return take(symbol, begin+len(s))
		}
	}
	r, _ := utf8.DecodeRuneInString(l.text[begin:])
	return token{}, l.errorf(begin, "unexpected %q; words, numbers, $names, \"texts\", comments after # and the signs %s are allowed", r, strings.Join(signs, " "))
}

// wordEnd returns the end of a word. A minus is part of it if a letter follows.
func (l *lexer) wordEnd(at int) int {
	for at < len(l.text) {
		c := l.text[at]
		inside := c == '-' && at+1 < len(l.text) && isLetter(l.text[at+1])
		if !inside && !isLetter(c) && !isDigit(c) && c != '_' {
			break
		}
		at++
	}
	return at
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// clip shortens a text for a complaint.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

// Error is a complaint about a file of rules.
type Error struct {
	File         string
	Line, Column int // from 1; columns count letters
	Message      string
}

// Error returns file:line:column: message.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}
