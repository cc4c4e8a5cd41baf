package tasks

// Kind is the level and the operation of tasks: the ib of ib#3.
type Kind struct {
	Symbol byte // the level's
	Op     Collective
}

// String is the paper's name of the kind: sr, ir, ib, sb.
func (k Kind) String() string {
	if k.Op == 0 || int(k.Op) >= len(rows) {
		return string(k.Symbol) + "?"
	}
	return string(k.Symbol) + k.Op.row().Suffix
}

// parseKind is the inverse of [Kind.String].
func parseKind(s string) (Kind, bool) {
	for c := Collective(1); int(c) < len(rows); c++ {
		if suffix := c.row().Suffix; suffix != "" && len(s) == 1+len(suffix) && isLetter(s[0]) && s[1:] == suffix {
			return Kind{s[0], c}, true
		}
	}
	return Kind{}, false
}

func isLetter(b byte) bool { return b >= 'a' && b <= 'z' }
