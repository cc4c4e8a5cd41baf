package rules

// Limits of files.
const (
	// MaxBytes bounds a file of rules, which rank 0 gives all ranks of a job.
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
	depth int
	part  Part // that the rule at work decides
	file  *file
}

// peek returns the next token without taking it.
func (p *parser) peek() (t token, err error) {
	if !p.has {
		p.ahead, err = p.next()
		p.has = err == nil
	}
	return p.ahead, err
}

// take returns the next token.
func (p *parser) take() (token, error) {
	t, err := p.peek()
	p.has = false
	return t, err
}

// rewind makes the lexer begin where the token ahead does.
func (p *parser) rewind() {
	if p.has {
		p.at, p.has = p.ahead.at, false
	}
}

// accept takes the next token if it is this word or sign.
func (p *parser) accept(text string) bool {
	t, err := p.peek()
	if err != nil || t.text != text || t.kind != word && t.kind != symbol {
		return false
	}
	p.has = false
	return true
}

// expect takes a word or sign, or complains.
func (p *parser) expect(text, what string) error {
	t, err := p.peek()
	if err != nil {
		return err
	}
	if !p.accept(text) {
		return p.errorf(t.at, "%s; expected %s", t.describe(), what)
	}
	return nil
}

// descend counts what is nested.
func (p *parser) descend(at int) error {
	if p.depth++; p.depth > maxDepth {
		return p.errorf(at, "nested more than %d deep", maxDepth)
	}
	return nil
}
