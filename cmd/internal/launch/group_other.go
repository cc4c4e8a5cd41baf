//go:build !unix

package launch

import (
	"errors"
	"os"
	"syscall"
)

// checkSystem refuses this system: without signals and groups of processes no job ends
// as it should.
func checkSystem() error {
	return errors.New("to launch processes needs Linux, or macOS for programs that do not join; goroutine ranks work here")
}

// Nothing below is reached: checkSystem comes first.

var signalNames []signalName

func groupAttr() *syscall.SysProcAttr { return nil }

func signalGroup(int, syscall.Signal) {}

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func inBackground(*os.File) bool { return false }
