package executor

import (
	"fmt"
	"runtime/debug"
)

// crash ends the process when a driver panics, a defect of this package or of a hook. The lock may
// be held and nobody could drive from then on: if the panic were recovered further up, everything
// would wait for ever and say nothing.
func crash() {
	if p := recover(); p != nil {
		endProcess(p)
	}
}

// endProcess ends the process with a driver's panic and the stack. It does not return.
func endProcess(p any) {
	stack := debug.Stack()
	go func() { panic(fmt.Sprintf("executor: a driver panicked: %v\n%s", p, stack)) }()
	select {}
}
