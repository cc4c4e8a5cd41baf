package executor

import (
	"os"
	"syscall"
	"unsafe"
)

// monotonic reads the machine's monotonic clock, ns: all processes of a machine see the same one,
// unless they are in different time namespaces.
func monotonic() int64 {
	const clockMonotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return ts.Nano()
}

// clockOrigin is equal in processes with the same clock.
func clockOrigin() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/time") // before Linux 5.6 there is none
	return string(boot) + space
}
