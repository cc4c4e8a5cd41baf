package agree

// bug is a mistake that tests make a machine make: whoever explores its states must find it.
type bug uint8

const (
	noBug          bug = iota
	acceptAll          // it accepts ballots that it has promised not to
	decideEarly        // it decides when it has proposed
	forgetDecision     // it tells no decision to who asks later
	ownLost            // it doesn't take in whom votes name as lost
	shrunkQuorum       // it counts a majority of those who are not lost
	anyHalf            // half without rank 0 is enough
	sameBallot         // it proposes another value under the same ballot
	dropAccepted       // a vote doesn't say what was accepted
	loseVoter          // votes that come late replace others
	noFlood            // it tells nobody a decision that it has heard
	bugs               // how many there are
)
