package join

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestFromEnv(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", "rank 0 of 1 from an environment without job variables"},
		{
			"TIERFLOW_RANK=3 TIERFLOW_SIZE=8 TIERFLOW_RENDEZVOUS=10.0.0.1:4000,[fd00::1]:4000 TIERFLOW_SECRET=xyzzy TIERFLOW_NODE=a TIERFLOW_NUMA=left TIERFLOW_SITE=east TIERFLOW_INTERFACES=eth*,!eth1 TIERFLOW_PORTS=4000-4099 TIERFLOW_ADVERTISE=203.0.113.7,2001:db8::7",
			"rank 3 of 8 from TIERFLOW_ variables, rendezvous 10.0.0.1:4000,[fd00::1]:4000, secret set, node a, NUMA domain left, site east, interfaces eth*,!eth1, ports 4000-4099, offered as 203.0.113.7,2001:db8::7",
		},
		{
			"RANK=1 WORLD_SIZE=2 MASTER_ADDR=fd00::1 MASTER_PORT=29500 TIERFLOW_SECRET=none",
			"rank 1 of 2 from RANK and WORLD_SIZE, rendezvous [fd00::1]:29500,[fd00::1]:19838, secret none",
		},
		{
			"RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=29500 TIERFLOW_SECRET=s TIERFLOW_RENDEZVOUS=h:4000",
			"rank 1 of 2 from RANK and WORLD_SIZE, rendezvous h:4000, secret set",
		},
		{"RANK=0 WORLD_SIZE=1", "rank 0 of 1 from RANK and WORLD_SIZE"},
		{"PMI_FD=6 PMI_RANK=1 PMI_SIZE=4", "rank 1 of 4 from PMI_RANK and PMI_SIZE, with PMI_FD, rendezvous shared by the launcher"},
		{
			"PMI_FD=6 PMI_RANK=1 PMI_SIZE=4 TIERFLOW_RENDEZVOUS=h:4000 TIERFLOW_SECRET=s",
			"rank 1 of 4 from PMI_RANK and PMI_SIZE, with PMI_FD, rendezvous h:4000, secret set",
		},
		{"PMI_FD=6 PMI_RANK=1 PMI_SIZE=4 TIERFLOW_LAUNCHER=none", "rank 0 of 1 from an environment without job variables"},
		{
			"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 SLURM_STEP_NODELIST=n[07-08] TIERFLOW_PORT=4000 TIERFLOW_SECRET=none",
			"rank 1 of 4 from SLURM_PROCID and SLURM_STEP_NUM_TASKS, rendezvous n07:4000, secret none",
		},
	} {
		cfg, err := FromEnv(lookup(c.env))
		if err != nil || cfg.String() != c.want {
			t.Errorf("%s\ngot  %v, %v\nwant %s", c.env, cfg, err, c.want)
		}
		if all := fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, &cfg); strings.Contains(all, "xyzzy") {
			t.Errorf("the secret is printed: %s", all)
		}
	}
}

func TestFromEnvErrors(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		env  string
		want []string // one line each, in order
	}{
		{"TIERFLOW_RANK=8 TIERFLOW_SIZE=8", []string{
			`TIERFLOW_RANK="8"; allowed are 0 to 7`, "TIERFLOW_RENDEZVOUS is missing", "TIERFLOW_SECRET is missing",
		}},
		{"TIERFLOW_SIZE=many TIERFLOW_INTERFACES=10.0.0.0/64,a*b TIERFLOW_NUMA=a/b TIERFLOW_SITE=a:b", []string{
			`TIERFLOW_SIZE="many"; allowed are 1 to`, "TIERFLOW_RANK is missing", "TIERFLOW_RENDEZVOUS is missing",
			`TIERFLOW_INTERFACES: interface filter "10.0.0.0/64"`, `interface filter "a*b"`,
			`TIERFLOW_NUMA: NUMA domain "a/b"; allowed are`, `TIERFLOW_SITE: site "a:b"; allowed are`,
			"TIERFLOW_SECRET is missing",
		}},
		{"TIERFLOW_RANK=0", []string{"TIERFLOW_SIZE is missing", "TIERFLOW_RENDEZVOUS is missing", "TIERFLOW_SECRET is missing"}},
		{"RANK=0", []string{"WORLD_SIZE is missing", "MASTER_ADDR is missing", "MASTER_PORT is missing", "TIERFLOW_SECRET is missing"}},
		{"JOB_COMPLETION_INDEX=0", []string{"TIERFLOW_SIZE is missing", "TIERFLOW_RENDEZVOUS is missing", "TIERFLOW_SECRET is missing"}},
		{"PMI_RANK=0", []string{"PMI_SIZE is missing", "TIERFLOW_RENDEZVOUS is missing", "TIERFLOW_SECRET is missing"}},
		{"WORLD_SIZE=4", []string{"RANK is missing", "MASTER_ADDR is missing", "MASTER_PORT is missing", "TIERFLOW_SECRET is missing"}},
		{"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 SLURM_STEP_NODELIST=n[07-08]", []string{
			"TIERFLOW_SECRET is missing: export one before srun, or use srun --mpi=pmi2, which needs none",
		}},
		{"JOB_COMPLETION_INDEX=0 TIERFLOW_SIZE=2", []string{"TIERFLOW_RENDEZVOUS is missing: a pod", "TIERFLOW_SECRET is missing"}},
		{"TIERFLOW_LAUNCHER=mpi", []string{`TIERFLOW_LAUNCHER="mpi"; allowed are`}},
		{"TIERFLOW_ADVERTISE=h,0.0.0.0,fe80::1%eth0,::ffff:10.0.0.1,10.0.0.1:80,10.0.0.1", []string{
			`TIERFLOW_ADVERTISE: "h"; allowed are IP addresses that other hosts may dial`, `"0.0.0.0"`, `"fe80::1%eth0"`, `"::ffff:10.0.0.1"`, `"10.0.0.1:80"`,
		}},
		{"TIERFLOW_ADVERTISE=" + strings.Repeat("10.0.0.1,", 17), []string{"TIERFLOW_ADVERTISE has 17 addresses; allowed are 16"}},
		{"TIERFLOW_PORTS=4099-4000", []string{`TIERFLOW_PORTS: ports "4099-4000"; allowed are FIRST-LAST and one port, 1 to 65535`}},
		{"TIERFLOW_JOIN_TIMEOUT=30", []string{`TIERFLOW_JOIN_TIMEOUT="30"; allowed are 1s to 24h`}},
		{"TIERFLOW_JOIN_TIMEOUT=25h", []string{`TIERFLOW_JOIN_TIMEOUT="25h"`}},
		{"PMI_PORT=127.0.0.1:1 PMI_ID=0", []string{"PMI: dial tcp 127.0.0.1:1: connect: connection refused"}},
		{"RANK=0 WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=99999 TIERFLOW_SECRET=s", []string{`MASTER_PORT="99999"`}},
		{"TIERFLOW_RANK=0 TIERFLOW_SIZE=2 TIERFLOW_RENDEZVOUS=h:x,h TIERFLOW_SECRET=s", []string{`TIERFLOW_RENDEZVOUS: "h:x"`, `TIERFLOW_RENDEZVOUS: "h"`}},
		{"TIERFLOW_RANK=1 TIERFLOW_SIZE=2 TIERFLOW_RENDEZVOUS=h:1 TIERFLOW_SECRET=s TIERFLOW_RENDEZVOUS_FD=3", []string{"only rank 0 has one"}},
		{
			fmt.Sprintf("TIERFLOW_RANK=0 TIERFLOW_SIZE=2 TIERFLOW_RENDEZVOUS=h:1 TIERFLOW_SECRET=s TIERFLOW_RENDEZVOUS_FD=%d", f.Fd()),
			[]string{"not a listening socket"},
		},
	} {
		_, err := FromEnv(lookup(c.env))
		if err == nil {
			t.Errorf("%s: no error", c.env)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if !slices.EqualFunc(lines, c.want, strings.Contains) {
			t.Errorf("%s\ngot  %q\nwant %q", c.env, lines, c.want)
		}
	}
}

func lookup(env string) func(string) string {
	return func(name string) string {
		for _, item := range strings.Fields(env) {
			if value, ok := strings.CutPrefix(item, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func FuzzFromEnv(f *testing.F) {
	f.Add("3", "8", "h:1,[::1]:2", "eth*,!lo")
	f.Fuzz(func(t *testing.T, rank, size, rendezvous, interfaces string) {
		env := map[string]string{"TIERFLOW_RANK": rank, "TIERFLOW_SIZE": size, envRendezvous: rendezvous, envInterfaces: interfaces, envSecret: "s"}
		cfg, err := FromEnv(func(name string) string { return env[name] })
		if err == nil && cfg.check() != nil {
			t.Errorf("%v passes but %v", cfg, cfg.check())
		}
	})
}
