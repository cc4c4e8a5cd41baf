package rules

// Limits of files.
const (
	// MaxBytes bounds a file of rules. Rank 0 gives it to all ranks of a job.
	MaxBytes = 256 << 10
	maxDepth = 64 // of nested conditions and formulas
)

// words are those with a meaning of their own.
var words = []string{"if", "then", "elif", "else", "default", "because", "and", "or", "not", "let", "all"}

// parser makes a file of a text.
type parser struct {
	*lexer
	ahead token // not taken yet, if has
	has   bool
	err   error // the first complaint: the file ends there
	depth int
	part  Part // decided by the rule at work
	file  *file
}

// fail complains of a place. Only the first complaint counts.
func (p *parser) fail(at int, format string, args ...any) {
	if p.err == nil {
		p.err = p.errorf(at, format, args...)
	}
}

// peek returns the next token without taking it.
func (p *parser) peek() token {
	if p.err == nil && !p.has {
		p.ahead, p.err = p.next()
		p.has = true
	}
	if p.err != nil {
		return token{kind: end}
	}
	return p.ahead
}

// take returns the next token.
func (p *parser) take() token {
	t := p.peek()
	p.has = false
	return t
}

// rewind moves the lexer back to the beginning of the token ahead.
func (p *parser) rewind() {
	if p.has && p.err == nil {
		p.at, p.has = p.ahead.at, false
	}
}

// accept takes the next token if it is this word or sign.
func (p *parser) accept(text string) bool {
	t := p.peek()
	if t.text != text || t.kind != word && t.kind != symbol {
		return false
	}
	p.has = false
	return true
}

// expect takes a word or sign, or complains.
func (p *parser) expect(text, what string) {
	if t := p.peek(); !p.accept(text) {
		p.fail(t.at, "%s; expected %s", t.describe(), what)
	}
}

// descend counts a nested condition or formula. The returned function ends it.
func (p *parser) descend(at int) (ascend func()) {
	if p.depth++; p.depth > maxDepth {
		p.fail(at, "nested more than %d deep", maxDepth)
	}
	return func() { p.depth-- }
}
