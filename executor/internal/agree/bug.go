package agree

// bug is a mistake that a test lets a machine make: an exploration of its states must find it.
type bug uint8

const (
	noBug          bug = iota
	acceptAll          // it accepts ballots against its promise
	decideEarly        // it decides when it has proposed
	forgetDecision     // it tells no decision to ranks that ask later
	ownLost            // it doesn't take in the lost ranks of votes
	shrunkQuorum       // it counts a majority of the living alone
	anyHalf            // half without rank 0 is enough
	sameBallot         // it proposes another value under the same ballot
	dropAccepted       // a vote lacks the accepted value
	loseVoter          // late votes replace others
	noFlood            // it tells nobody a decision from another rank
	bugs               // how many there are
)
