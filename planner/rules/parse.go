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

// parse reads a text.
func parse(name, text string) (*file, error) {
	p := &parser{lexer: newLexer(name, text)}
	p.file = &file{lexer: p.lexer}
	if len(text) > MaxBytes {
		return nil, p.errorf(0, "%d bytes of rules; allowed are %d", len(text), MaxBytes)
	}
	for {
		t, err := p.peek()
		if err != nil {
			return nil, err
		}
		if t.kind == end {
			return p.file, nil
		}
		if err := p.item(t); err != nil {
			return nil, err
		}
	}
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

// item reads a named value, a named condition or a rule.
func (p *parser) item(t token) (err error) {
	i := item{at: t.at}
	switch {
	case t.kind == named:
		i.value, err = p.value()
	case t.text == "let" && t.kind == word:
		i.let, err = p.let()
	case t.kind == word:
		i.statute, err = p.statute()
	default:
		err = p.errorf(t.at, "%s; expected a rule such as bcast: shape=flat, a named value such as $small = 32KiB, or let NAME = CONDITION", t.describe())
	}
	if err != nil {
		return err
	}
	next, err := p.peek()
	if err != nil {
		return err
	}
	i.to = next.at
	p.file.items = append(p.file.items, i)
	return nil
}
