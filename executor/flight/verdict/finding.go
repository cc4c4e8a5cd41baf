package verdict

import (
	"fmt"
	"slices"
	"time"
)

// Class is a kind of finding. The zero value is invalid.
type Class uint8

// The classes, in the order of findings.
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

// Finding is one fault of a job.
type Finding struct {
	Class Class         `json:"class"`
	Ranks []int         `json:"ranks"`            // of the world, to blame, ascending; of a slow link the sender and the receiver if they are known apart
	Nodes []string      `json:"nodes,omitempty"`  // set if all ranks of a node are to blame
	For   time.Duration `json:"for_ns,omitempty"` // the wait of the others; 0: unknown
	Text  string        `json:"text"`             // the fault and its place, without the class
}

// String has the class first.
func (f *Finding) String() string { return f.Class.String() + ": " + f.Text }

// Same reports whether two findings blame the same ranks for the same.
func (f *Finding) Same(g *Finding) bool {
	return f.Class == g.Class && slices.Equal(f.Ranks, g.Ranks)
}
