package launch

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// signalName is a signal and how it is called between launcher and agent: numbers
// differ between systems.
type signalName struct {
	signal syscall.Signal
	name   string
}

func nameOf(s os.Signal) string {
	for _, n := range signalNames {
		if n.signal == s {
			return n.name
		}
	}
	return ""
}

func signalNamed(name string) (syscall.Signal, error) {
	for _, n := range signalNames {
		if n.name == name {
			return n.signal, nil
		}
	}
	return 0, fmt.Errorf("unknown signal %q", name)
}

// notifyForwarded returns a channel of the signals to forward. An ignored one stays
// so, as nohup wants.
func notifyForwarded() chan os.Signal {
	ch := make(chan os.Signal, 16)
	for _, n := range signalNames {
		if n.signal != syscall.SIGKILL && !signal.Ignored(n.signal) {
			signal.Notify(ch, n.signal)
		}
	}
	return ch
}
