package pairs

import (
	"hash/fnv"
	"math"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
)

// HostNumber returns a number of this process's system: emulated nodes share one. It is 0 or more.
func HostNumber() int64 {
	h := fnv.New64a()
	name, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		host, _ := os.Hostname()
		name = []byte(host)
	}
	_, _ = h.Write(name)
	return int64(h.Sum64() >> 1)
}

// Cores returns the processors of the ranks of a topology. hosts has the number of each rank's
// host, see [HostNumber]. All hosts are taken to have as many processors as this one.
func Cores(t *levels.Topology, hosts []int64) machine.Cores {
	apart := len(slices.Compact(slices.Sorted(slices.Values(hosts))))
	if apart < t.Nodes() {
		return machine.Cores{InAll: apart * runtime.NumCPU()}
	}
	return machine.Cores{PerNode: runtime.NumCPU()}
}

// Sizes of a rank's work by itself.
const (
	ownBytes  = 128 << 10
	ownRounds = 4
)

// OwnSpeed returns this rank's time to copy a byte and to add one to another, ns.
func OwnSpeed() (copies, adds float64) {
	a, b := make([]float32, ownBytes/4), make([]float32, ownBytes/4)
	copies, adds = math.Inf(1), math.Inf(1)
	for range ownRounds {
		begun := time.Now()
		copy(a, b)
		half := time.Now()
		for i, v := range b {
			a[i] += v
		}
		copies = min(copies, float64(half.Sub(begun)))
		adds = min(adds, float64(time.Since(half)))
	}
	return copies / ownBytes, adds / ownBytes
}
