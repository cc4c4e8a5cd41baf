package planner

import (
	"os"
	"sync"

	"github.com/tierflow/tierflow/levels/join/env"
)

// warned is the process's: its environment is, too.
var warned sync.Once

// warnOfVariables warns of unknown variables that begin like tierflow's, once in a
// process. It says so to Options.Log, or to [slog.Default]: their user hears of them
// nowhere else.
func (o *Options) warnOfVariables() {
	log := o.logger()
	warned.Do(func() {
		for _, u := range env.Unknown(os.Environ()) {
			log.Warn("unknown environment variable", "name", u.Name, "nearest", u.Nearest)
		}
	})
}
