package launch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/levels/ranges"
)

// hostProcessors describes the processors that this process may run on.
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

// onProcessors calls f on a thread bound to some processors; processes started by f inherit that.
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
	defer unix.SchedSetaffinity(0, &before) // it was allowed before
	if len(numbers) == 1 {
		defer slackenTimers()()
	}
	return f()
}

// boundSlack lets timers of a rank with one processor be so many ns late. For some milliseconds
// after each sleep a thread of Go's runtime wakes every 20 µs, on the processor of a rank waiting
// for its peers. With late timers it wakes 20 times less often. First calls of a job, allreduce
// of 4 B on two processors: p99 from 22–34 µs to 0.7–2.6 (2026-11-22).
const boundSlack = 1e6

// slackenTimers lets timers of the calling thread be late, and those of processes that it starts,
// until restore is called. If the kernel refuses they stay as they are.
func slackenTimers() (restore func()) {
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || before >= boundSlack || unix.Prctl(unix.PR_SET_TIMERSLACK, boundSlack, 0, 0, 0) != nil {
		return func() {}
	}
	return func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(before), 0, 0, 0) } // it was allowed before
}
