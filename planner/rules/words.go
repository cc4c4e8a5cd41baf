package rules

import (
	"fmt"
	"slices"
	"strings"
)

// wordsPackage registers the words of the libraries that foreignWords begins with.
const wordsPackage = "github.com/tierflow/tierflow/planner/rules/foreign"

// foreignWords has what RegisterWords was given, by library; nil: its package is not imported.
var foreignWords = map[string]func(collective, value string) (plan string, err error){"ompi": nil, "mpich": nil}

// RegisterWords lets forced plans have words LIBRARY=VALUE: plan returns the equal plan for a
// collective. It is for init functions: no other call of the package may run meanwhile. It panics
// if the library has words already.
func RegisterWords(library string, plan func(collective, value string) (plan string, err error)) {
	if foreignWords[library] != nil {
		panic("rules: words registered twice: " + library)
	}
	foreignWords[library] = plan
}

// ExpandWords replaces words of other libraries, such as ompi=6/65536 and mpich=binomial, in a text of
// forced plans by equal plans. The collective must be named: bcast:ompi=6/65536. Words of Open MPI and
// MPICH are an error that names the package to import, unless it is.
func ExpandWords(text string) (string, error) {
	parts := strings.Split(text, ";")
	for i, part := range parts {
		name, rest, has := strings.Cut(part, ":")
		if !has {
			rest = part
		}
		list := strings.Split(rest, ",")
		changed := false
		for k, word := range list {
			key, value, set := strings.Cut(strings.TrimSpace(word), "=")
			equal, known := foreignWords[key]
			switch {
			case !set || !known:
				continue
			case equal == nil:
				return "", fmt.Errorf("plan %q: ompi= and mpich= are words of other libraries; for them the program needs import _ %q", part, wordsPackage)
			case !has:
				return "", fmt.Errorf("plan %q: %s= numbers algorithms of a collective; write bcast:%s", part, key, strings.TrimSpace(word))
			}
			plan, err := equal(strings.TrimSpace(name), value)
			if err != nil {
				return "", fmt.Errorf("plan %q: %w", part, err)
			}
			list[k], changed = plan, true
		}
		if changed {
			parts[i] = name + ":" + strings.Join(slices.DeleteFunc(list, func(w string) bool { return w == "" }), ",")
		}
	}
	return strings.Join(parts, ";"), nil
}
