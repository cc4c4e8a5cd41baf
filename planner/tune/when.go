package tune

import "fmt"

// RaceWhen chooses requests for races in the tasks methods: plans run in turns.
type RaceWhen uint8

// The zero value is RacesAuto.
const (
	RacesAuto  RaceWhen = iota // requests with overlapping predictions of plans
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

// ParseRaceWhen is the inverse of [RaceWhen.String].
func ParseRaceWhen(s string) (RaceWhen, error) {
	for w, name := range raceNames {
		if name == s {
			return RaceWhen(w), nil
		}
	}
	return 0, fmt.Errorf("unknown word %q for races; known are %v", s, raceNames)
}
