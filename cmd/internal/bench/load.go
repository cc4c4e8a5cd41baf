package bench

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/planner"
)

// usage is the processor time of a process and its host, in ticks of the kernel's clock, by default of 10 ms.
type usage struct {
	host, process int64 // which ones
	own           int64 // of the process
	busy          int64 // of all processes, and of other guests of the machine below
	all           int64 // of the processors, idle or not
}

// readUsage returns the ticks up to now; none where the kernel doesn't tell.
func readUsage() usage {
	stat, _ := os.ReadFile("/proc/self/stat")
	u := parseUsage(kit.KernelFile("/proc/stat"), string(stat))
	h := fnv.New32a()
	h.Write([]byte(kit.KernelFile("/proc/sys/kernel/random/boot_id")))
	u.host, u.process = int64(h.Sum32()), int64(os.Getpid())
	return u
}

// parseUsage reads the first line of /proc/stat and all of /proc/self/stat, see proc(5). What interrupts take is
// nobody's.
func parseUsage(host, process string) (u usage) {
	const user, nice, system, steal = 1, 2, 3, 8
	words := strings.Fields(host)
	for i, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || i > steal { // guests are in user
			continue
		}
		u.all += n
		if i == user || i == nice || i == system || i == steal {
			u.busy += n
		}
	}
	const userTime, systemTime = 11, 12 // behind the name, which may hold anything
	words = strings.Fields(process[strings.LastIndexByte(process, ')')+1:])
	if len(words) <= systemTime || u.all == 0 {
		return usage{}
	}
	for _, word := range words[userTime : systemTime+1] {
		n, _ := strconv.ParseInt(word, 10, 64)
		u.own += n
	}
	return u
}

// since returns the ticks from before up to now.
func (u usage) since(before usage) usage {
	u.own, u.busy, u.all = u.own-before.own, u.busy-before.busy, u.all-before.all
	return u
}

// Ticks by which a difference may be wrong, for each number that is rounded.
const (
	processTicks = 2
	hostTicks    = 4
)

// othersShare returns the share of the processors' time that programs other than the ranks took, at least; 0: none, or
// unknown. Ranks may share processes, and those may share hosts.
func othersShare(ranks []usage) float64 {
	hosts, processes := map[int64]bool{}, map[[2]int64]bool{}
	var busy, own, all int64
	for _, u := range ranks {
		if !hosts[u.host] {
			hosts[u.host] = true
			busy, all = busy+u.busy-hostTicks, all+u.all
		}
		if at := [2]int64{u.host, u.process}; !processes[at] {
			processes[at] = true
			own += u.own + processTicks
		}
	}
	if all <= 0 || busy <= own {
		return 0
	}
	return float64(busy-own) / float64(all)
}

// gatherOthers returns [othersShare] since each rank's usage before, on all ranks of c.
func gatherOthers(ctx context.Context, c *planner.Comm, before usage) (float64, error) {
	u := readUsage().since(before)
	mine := []int64{u.host, u.process, u.own, u.busy, u.all}
	all := make([]int64, len(mine)*c.Size())
	if err := planner.Allgather(ctx, c, mine, all); err != nil {
		return 0, fmt.Errorf("collect processor times: %w", err)
	}
	ranks := make([]usage, c.Size())
	for i := range ranks {
		n := all[i*len(mine):]
		ranks[i] = usage{n[0], n[1], n[2], n[3], n[4]}
	}
	return othersShare(ranks), nil
}

// mostOthers is the share of the processors' time above which others are warned of: a call that needs all
// processors takes at least so much longer.
const mostOthers = 0.1

// othersText returns the warning; empty: there is none.
func othersText(share float64) string {
	if share <= mostOthers {
		return ""
	}
	return fmt.Sprintf("# warning: other programs took %.0f%% of the processors' time meanwhile\n", 100*share)
}
