package tune

import "fmt"

// Method is a way to find out how long plans take, one of [Methods]. All write the same
// kind of table. A method is a row here and a strategy in a file of its own.
type Method struct {
	name       string
	about      string // what it does, in lines of help
	heuristics bool   // it leaves out what rarely wins, see [Space.Heuristics]
	last       int    // measurements of each request that it makes at the end, when it has seen the others
	begin      func(k *knowledge) strategy
	narrow     func(s *Space) // fills in lists that are not given; nil: those of [Space]
}

// Methods lists the methods: [Searches], then models.
func Methods() []*Method { return append(Searches(), Models) }

// Searches lists the methods that HAN compares (section III-C, figures 8 and 9).
func Searches() []*Method { return []*Method{Exhaustive, ExhaustivePruned, Tasks, TasksPruned} }

// String is the method's name in tables and flags.
func (m *Method) String() string { return m.name }

// About says what the method does, in lines of help.
func (m *Method) About() string { return m.about }

// ParseMethod finds a method by its name.
func ParseMethod(s string) (*Method, error) {
	for _, m := range Methods() {
		if m.name == s {
			return m, nil
		}
	}
	return nil, fmt.Errorf("unknown method %q; known are %v", s, Methods())
}
