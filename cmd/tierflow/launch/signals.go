package launch

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// signalNames are the signals from a launcher to ranks. They travel by name because
// numbers differ between systems. All but the last are forwarded when the launcher
// gets them.
var signalNames = []struct {
	signal syscall.Signal
	name   string
}{
	{syscall.SIGINT, "INT"},
	{syscall.SIGTERM, "TERM"},
	{syscall.SIGHUP, "HUP"},
	{syscall.SIGUSR1, "USR1"},
	{syscall.SIGUSR2, "USR2"},
	{syscall.SIGQUIT, "QUIT"},
	{syscall.SIGKILL, "KILL"},
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
