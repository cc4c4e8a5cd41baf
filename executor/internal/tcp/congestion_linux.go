package tcp

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// UsableCongestion complains of a TCP congestion control unless the kernel has it
// and lets this process use it.
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

// oneLine returns the text of a kernel's file, if it can be read.
func oneLine(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return "what " + name + " would say"
	}
	return cmp.Or(strings.TrimSpace(string(data)), "none")
}
