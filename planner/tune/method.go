package tune

// Method is a way to find out how long plans take, one of [Methods]. All write the same
// kind of table. A method is a variable and a strategy, in a file of
// its own, and a name in methods.go.
type Method struct {
	name       string
	about      string // its description, in lines of help
	heuristics bool   // it leaves out plans that rarely win, see [Space.Heuristics]
	begin      func(k *knowledge) strategy
	narrow     func(s *Space) // fills in missing lists; nil: those of [Space]
}

// String is the method's name in tables and flags.
func (m *Method) String() string { return m.name }

// About describes the method in lines of help.
func (m *Method) About() string { return m.about }
