package executor

import (
	"time"

	"github.com/tierflow/tierflow/executor/flight"
)

// Elsewhere is what a rank's program does in another library, such as MPI, of whose calls some are this module's. The
// zero value is a program in no such call.
type Elsewhere struct {
	Call   string        // the other library's call; empty: none
	For    time.Duration // that it has been in it
	Waited time.Duration // in all such calls so far: whoever is in one waits, or works for the other library
	At     string        // place of the program's last call of either library: main prog.c:12; empty: unknown
}

// elsewhere asks for it.
func (c *Config) elsewhere() (e Elsewhere) {
	if c.Elsewhere != nil {
		e = c.Elsewhere()
	}
	return e
}

// afterCall marks the place of a call that has ended.
const afterCall = " (after the call)"

// tell adds it to a state.
func (e *Elsewhere) tell(s *flight.State) {
	if e.At != "" {
		if s.At = e.At; s.Doing == flight.Outside && e.Call == "" {
			s.At += afterCall
		}
	}
	if e.Call != "" {
		s.Elsewhere = &flight.Elsewhere{Call: e.Call, For: e.For}
	}
}
