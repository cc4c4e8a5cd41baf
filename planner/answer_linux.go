package planner

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels/join/env"
)

// answering starts answering the launcher's questions, once.
var answering sync.Once

// answerLauncher prints the states of this process's ranks to standard error whenever the
// launcher asks, and keeps their traces. Each byte from the launcher's descriptor is a question.
// It goes on until the process ends.
func answerLauncher() {
	answering.Do(func() {
		fd, err := strconv.Atoi(os.Getenv(env.StateFD))
		if err != nil || fd < 3 {
			return
		}
		_ = os.Unsetenv(env.StateFD) // children of this process are not asked
		var kind syscall.Stat_t
		if syscall.Fstat(fd, &kind) != nil || kind.Mode&syscall.S_IFMT != syscall.S_IFIFO {
			return // somebody between the launcher and this process has closed it
		}
		syscall.CloseOnExec(fd)
		_ = syscall.SetNonblock(fd, true) // else a thread waits there
		executor.AnswerEach(os.NewFile(uintptr(fd), env.StateFD), func() {
			open := openJobs()
			for _, j := range open {
				j.world.PrintStates(os.Stderr)
			}
			for _, j := range open { // it is asked before the job is ended
				if err := j.world.KeepTraces(); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
			if len(open) == 0 {
				fmt.Fprintf(os.Stderr, "in no job, at %s\n", executor.ProgramAt())
			}
		})
	})
}
