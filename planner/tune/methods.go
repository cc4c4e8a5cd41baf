package tune

import "fmt"

// Methods lists the methods: [Searches], then [Models] and [Learn].
func Methods() []*Method { return append(Searches(), Models, Learn) }

// Searches lists the methods in HAN's comparison (section III-C, figures 8 and 9).
func Searches() []*Method { return []*Method{Exhaustive, ExhaustivePruned, Tasks, TasksPruned} }

// ParseMethod finds a method by its name.
func ParseMethod(s string) (*Method, error) {
	for _, m := range Methods() {
		if m.name == s {
			return m, nil
		}
	}
	return nil, fmt.Errorf("unknown method %q; known are %v", s, Methods())
}
