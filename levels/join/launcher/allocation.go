package launcher

import (
	"fmt"
	"strconv"
)

// Slots is how many ranks a host takes.
type Slots struct {
	Host  string
	Slots int
}

// firstSpecialStep is the lowest number of Slurm's steps that aren't a user's, such as
// that of a batch script or of a shell in salloc.
const firstSpecialStep = 0xfffffff0

// Allocation returns the hosts of the Slurm allocation around this process, and
// their tasks, else processors. Within a step, as one of its tasks, it returns none:
// the step was given its part. So it does without Slurm.
func Allocation(getenv func(string) string) ([]Slots, error) {
	v := NewVars(getenv)
	list := v.Get("SLURM_JOB_NODELIST")
	step, err := strconv.ParseUint(v.Get("SLURM_STEP_ID"), 10, 32)
	if list == "" || v.Any("SLURM_STEP_ID") && (err != nil || step < firstSpecialStep) {
		return nil, nil
	}
	hosts, err := parseHosts(list)
	if err != nil {
		return nil, fmt.Errorf("SLURM_JOB_NODELIST=%w", err)
	}
	name := v.first("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE")
	if name == "" {
		return nil, fmt.Errorf("SLURM_JOB_NODELIST=%s, but SLURM_TASKS_PER_NODE is missing", quoteStart(list))
	}
	counts, err := ParseCounts(v.Get(name))
	if err != nil {
		return nil, fmt.Errorf("%s=%w", name, err)
	}
	if len(counts) != len(hosts) {
		return nil, fmt.Errorf("%s=%s tells of %d hosts, SLURM_JOB_NODELIST=%s of %d",
			name, quoteStart(v.Get(name)), len(counts), quoteStart(list), len(hosts))
	}
	slots := make([]Slots, len(hosts))
	for i, host := range hosts {
		slots[i] = Slots{host, counts[i]}
	}
	return slots, nil
}
