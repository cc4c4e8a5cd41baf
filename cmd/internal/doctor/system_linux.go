package doctor

import (
	"math"

	"github.com/tierflow/tierflow/levels/ranges"
	"golang.org/x/sys/unix"
)

// readSystem reads limits and CPUs.
func (f *facts) readSystem() {
	f.Files, f.FilesHard = limit(unix.RLIMIT_NOFILE)
	f.Locked, _ = limit(unix.RLIMIT_MEMLOCK)
	f.AddressSpace, _ = limit(unix.RLIMIT_AS)
	f.SharedFiles = unlimited
	var fs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &fs); err == nil {
		f.SharedFiles = int64(fs.Blocks) * int64(fs.Bsize)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err == nil {
		f.CPUs, f.CPUCount = cpuList(set.IsSet, 8*len(set)*8), set.Count()
	}
}

// limit returns a soft and a hard limit.
func limit(which int) (soft, hard int64) {
	var l unix.Rlimit
	if err := unix.Getrlimit(which, &l); err != nil {
		return unlimited, unlimited
	}
	signed := func(n uint64) int64 {
		if n > math.MaxInt64 {
			return unlimited
		}
		return int64(n)
	}
	return signed(l.Cur), signed(l.Max)
}

// cpuList writes a set as the kernel does: 0-3,8.
func cpuList(has func(cpu int) bool, n int) string {
	var all []int
	for cpu := range n {
		if has(cpu) {
			all = append(all, cpu)
		}
	}
	return ranges.Text(all)
}
