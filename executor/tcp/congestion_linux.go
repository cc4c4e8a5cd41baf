package tcp

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// UsableCongestion complains of a TCP congestion control that the kernel doesn't have,
// or doesn't let this process use.
func UsableCongestion(name string) error {
	if name == "" {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a socket to try TCP congestion control %q: %w", name, err)
	}
	defer unix.Close(fd)
	if err := SetCongestion(fd, name); err != nil {
		const dir = "/proc/sys/net/ipv4/tcp_"
		return fmt.Errorf("%w; this kernel has %s and lets every user choose %s", err,
			oneLine(dir+"available_congestion_control"), oneLine(dir+"allowed_congestion_control"))
	}
	return nil
}

// SetCongestion chooses the congestion control of a connection. Empty: the system's choice.
func SetCongestion(fd int, name string) error {
	if name == "" {
		return nil
	}
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name); err != nil {
		return fmt.Errorf("TCP congestion control %q: %w", name, err)
	}
	return nil
}

// oneLine is what a file of the kernel's says, if it can be read.
func oneLine(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return "what " + name + " would say"
	}
	return cmp.Or(strings.TrimSpace(string(data)), "none")
}
