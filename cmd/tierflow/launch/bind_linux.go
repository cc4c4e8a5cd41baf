package launch

import (
	"fmt"
	"os"

	"github.com/tierflow/tierflow/levels/ranges"
	"golang.org/x/sys/unix"
)

// hostProcessors describes those on which this process may run.
func hostProcessors() ([]processor, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("processors of the host: %w", err)
	}
	var allowed []int
	for cpu := range 64 * len(set) {
		if set.IsSet(cpu) {
			allowed = append(allowed, cpu)
		}
	}
	return readProcessors(os.DirFS("/sys"), allowed), nil
}

// onProcessors calls f, on a thread that may run only there; what f starts inherits that.
// The calling goroutine must be locked to its thread. nil: everywhere.
func onProcessors(numbers []int, f func() error) error {
	if numbers == nil {
		return f()
	}
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("processors of the launcher: %w", err)
	}
	for _, cpu := range numbers {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("bind to processors %s: %w", ranges.Text(numbers), err)
	}
	defer unix.SchedSetaffinity(0, &before) // which was allowed before
	return f()
}
