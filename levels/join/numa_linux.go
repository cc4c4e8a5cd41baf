package join

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// systemDomain is the NUMA domain of this process, if it is bound to one.
func systemDomain() (string, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return "", fmt.Errorf("CPU affinity: %w", err)
	}
	return numaDomain(os.DirFS("/sys"), affinity{set.Count(), set.IsSet})
}
