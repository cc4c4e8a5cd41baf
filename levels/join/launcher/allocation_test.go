package launcher

import (
	"fmt"
	"strings"
	"testing"
)

func TestAllocation(t *testing.T) {
	const job = "SLURM_JOB_ID=9 SLURM_JOB_NODELIST=n[1-2] SLURM_TASKS_PER_NODE=2(x2) SLURM_JOB_CPUS_PER_NODE=4,8"
	for _, c := range []struct{ env, want string }{
		{"", "[]"},
		{job, "[{n1 2} {n2 2}]"},
		{job + " SLURM_TASKS_PER_NODE=", "[{n1 4} {n2 8}]"},
		{job + " SLURM_STEP_ID=0", "[]"},
		{job + " SLURM_STEP_ID=4294967290", "[{n1 2} {n2 2}]"}, // a shell of salloc
		{job + " SLURM_STEP_ID=?", "[]"},
	} {
		got, err := Allocation(lookup(c.env))
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, %v, want %s", c.env, got, err, c.want)
		}
	}
	for env, want := range map[string]string{
		"SLURM_JOB_NODELIST=n[":                          `SLURM_JOB_NODELIST="n[": want names`,
		"SLURM_JOB_NODELIST=n1":                          "SLURM_TASKS_PER_NODE is missing",
		"SLURM_JOB_NODELIST=n1 SLURM_TASKS_PER_NODE=two": `SLURM_TASKS_PER_NODE="two": want numbers`,
		"SLURM_JOB_NODELIST=n1 SLURM_TASKS_PER_NODE=1,2": "tells of 2 hosts",
	} {
		if got, err := Allocation(lookup(env)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", env, got, err, want)
		}
	}
}
