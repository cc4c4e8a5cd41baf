package tune

import "fmt"

// RaceWhen says for which requests the tasks methods run plans in turns.
type RaceWhen uint8

// The zero value is RacesAuto.
const (
	RacesAuto  RaceWhen = iota // where predictions of plans overlap
	RacesNever                 // none: the table is predicted from tasks alone
)

var raceNames = [...]string{RacesAuto: "auto", RacesNever: "never"}

// String is the word for it: auto or never.
func (w RaceWhen) String() string {
	if int(w) >= len(raceNames) {
		return fmt.Sprintf("RaceWhen(%d)", uint8(w))
	}
	return raceNames[w]
}

// ParseRaceWhen reads what [RaceWhen.String] prints.
func ParseRaceWhen(s string) (RaceWhen, error) {
	for w, name := range raceNames {
		if name == s {
			return RaceWhen(w), nil
		}
	}
	return 0, fmt.Errorf("unknown word %q for races; known are %v", s, raceNames)
}
