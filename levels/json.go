package levels

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/levels/strictjson"
)

// ParseJSON reads a topology file: either a spec for [Parse],
//
//	{"spec": "4x2/rr"}
//
// or levels from the inside out and for each rank the names of its domains, also
// from the inside out, without the outermost, which holds all ranks:
//
//	{"levels": [{"name": "numa", "symbol": "m"},
//	            {"name": "node", "symbol": "s"},
//	            {"name": "network", "symbol": "i"}],
//	 "ranks": [["numa0", "a"], ["numa1", "a"], ["numa0", "b"]]}
//
// Names need to be distinct only within the domain around them: a's numa0 is not
// b's. Unknown or repeated keys, repeated symbols and rows of the wrong length are
// errors. The error lists what is wrong, each with name:line.
func ParseJSON(name string, data []byte) (*Topology, error) {
	if name == "" {
		name = "topology"
	}
	r, err := strictjson.NewReader(name, data)
	if err != nil {
		return nil, err
	}
	j := reader{Reader: r, pos: position{file: name, whole: r.Line()}}
	f := j.file()
	if err := j.Err(); err != nil {
		return nil, err
	}
	if f.given == "spec" {
		t, err := Parse(f.spec)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, f.specLine, err)
		}
		return t, nil
	}
	return build(f.levels, f.ranks, checkName, itself, j.pos)
}

// file is the contents of a topology file.
type file struct {
	given    string // its keys
	spec     string
	specLine int
	levels   []Level
	ranks    [][]string
}

// reader reads a topology file and keeps the lines of its parts.
type reader struct {
	*strictjson.Reader
	pos position
}

func (j *reader) file() (f file) {
	keys := []string{"spec", "levels", "ranks"}
	given := j.Object("a topology", keys, 0, func(key string) {
		switch key {
		case "spec":
			f.specLine = j.Line()
			f.spec = j.Text(`"spec"`)
		case "levels":
			j.Array(`"levels"`, func() {
				j.pos.levels = append(j.pos.levels, j.Line())
				f.levels = append(f.levels, j.level())
			})
		case "ranks":
			j.Array(`"ranks"`, func() {
				j.pos.ranks = append(j.pos.ranks, j.Line())
				f.ranks = append(f.ranks, j.row(len(f.ranks)))
			})
		}
	})
	f.given = strings.Join(given, " and ")
	if f.given != "spec" && f.given != "levels and ranks" {
		j.Complain(j.pos.whole, "keys %q; needed are either spec or levels and ranks", f.given)
	}
	return f
}

func (j *reader) level() (l Level) {
	keys := []string{"name", "symbol"}
	j.Object("a level", keys, 0, func(key string) {
		line := j.Line()
		s := j.Text("a level's " + key)
		switch {
		case key == "name":
			l.Name = s
		case len(s) == 1:
			l.Symbol = s[0]
		default:
			j.Complain(line, "symbol %q; allowed is one letter a to z", strictjson.Clip(s))
		}
	})
	return l
}

func (j *reader) row(r int) (names []string) {
	j.Array(fmt.Sprintf("rank %d", r), func() { names = append(names, j.Text("a domain's name")) })
	return names
}
