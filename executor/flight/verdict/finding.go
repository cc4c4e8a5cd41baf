package verdict

import (
	"fmt"
	"time"
)

// Class is a kind of finding. The zero value is invalid.
type Class uint8

// The classes, in the order in which findings are told.
const (
	_ Class = iota
	Died
	Unreachable
	Stopped
	Mismatch
	Resources
	Computing
	Deadlock
	Late
	SlowLink
	SlowRank
	maxClass
)

var classNames = [maxClass]string{
	Died: "died", Unreachable: "unreachable", Stopped: "stopped", Mismatch: "mismatch", Resources: "resources",
	Computing: "computing", Deadlock: "deadlock", Late: "late", SlowLink: "slow link", SlowRank: "slow rank",
}

// String is the class's name.
func (c Class) String() string {
	if c == 0 || c >= maxClass {
		return fmt.Sprintf("class(%d)", uint8(c))
	}
	return classNames[c]
}

// MarshalText lets JSON have the name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a name.
func (c *Class) UnmarshalText(text []byte) error {
	for k := Died; k < maxClass; k++ {
		if classNames[k] == string(text) {
			*c = k
			return nil
		}
	}
	return fmt.Errorf("no class of findings is called %q", text)
}

// Finding is one thing that is wrong with a job.
type Finding struct {
	Class Class
	Ranks []int         // of the world, to blame, ascending; of a slow link who sends and who receives
	Nodes []string      `json:",omitempty"` // where all ranks of a node are to blame
	For   time.Duration `json:",omitempty"` // that others have waited; 0: unknown
	Text  string        // what and where, without the class
}

// String has the class first.
func (f *Finding) String() string { return f.Class.String() + ": " + f.Text }

// Same reports whether two findings blame the same ranks for the same.
func (f *Finding) Same(g *Finding) bool {
	if f.Class != g.Class || len(f.Ranks) != len(g.Ranks) {
		return false
	}
	for i, r := range f.Ranks {
		if g.Ranks[i] != r {
			return false
		}
	}
	return true
}
