package launcher

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Variables as launchers set them.
const (
	hydra     = "PMI_FD=6 PMI_RANK=1 PMI_SIZE=4 MPI_LOCALNRANKS=4 MPI_LOCALRANKID=1"
	openMPI   = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=1 PMIX_NAMESPACE=1039728641 PMIX_SECURITY_MODE=native PMIX_SERVER_URI3=1039728640.0;tcp4://127.0.0.1:57993"
	slurmStep = "SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NODELIST=node[0-1]"
	slurmPMIx = slurmStep + " PMIX_RANK=1 PMIX_NAMESPACE=slurm.pmix.9.0 PMIX_SECURITY_MODE=munge,native PMIX_SERVER_URI3=slurm.pmix.9.0.0;tcp4://127.0.0.1:40000"
	batch     = "SLURM_JOB_ID=9 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_NODELIST=node[0-1]"
	daemon    = "SLURM_JOB_ID=9 SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NODELIST=node1"
	daemons   = "SLURM_JOB_ID=9 SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=node[1-2]"
)

func lookup(env string) func(string) string {
	return func(name string) string {
		for _, item := range slices.Backward(strings.Fields(env)) {
			if value, ok := strings.CutPrefix(item, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestFind(t *testing.T) {
	for what, c := range map[string]struct{ env, want string }{
		"nobody":                  {"", "none 0 of 1"},
		"our own":                 {"TIERFLOW_RANK=3 TIERFLOW_SIZE=8", "tierflow 3 of 8"},
		"our own inside all":      {openMPI + " " + hydra + " " + slurmStep + " TIERFLOW_RANK=3 TIERFLOW_SIZE=8", "tierflow 3 of 8"},
		"torchrun":                {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1", "torchrun 1 of 2 at h:1,h:15189"},
		"torchrun of the command": {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1 TORCHELASTIC_RUN_ID=none", "torchrun 1 of 2 at h:28535"},
		"torchrun, port given":    {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1 TORCHELASTIC_RUN_ID=none TIERFLOW_PORT=7", "torchrun 1 of 2 at h:7"},
		"torchrun in Slurm":       {slurmStep + " RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1", "torchrun 1 of 2 at h:1,h:15189"},
		"a stray MASTER_ADDR":     {"MASTER_ADDR=h MASTER_PORT=1", "none 0 of 1"},
		"MASTER_ADDR in mpirun":   {openMPI + " MASTER_ADDR=h MASTER_PORT=1", "pmix 1 of 4 shared"},
		"mpirun":                  {openMPI, "pmix 1 of 4 shared"},
		"mpirun in salloc":        {openMPI + " " + daemon, "pmix 1 of 4 shared"},
		"mpirun in salloc -N3":    {openMPI + " " + daemons, "pmix 1 of 4 shared"},
		"mpirun in srun":          {openMPI + " " + hydra, "pmix 1 of 4 shared"},
		"mpirun of one":           {openMPI + " OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0", "pmix 0 of 1"},
		"mpirun, asked by nobody": {openMPI + " TIERFLOW_RENDEZVOUS=h:1 TIERFLOW_SECRET=s", "pmix 1 of 4"},
		"mpirun, secret given":    {openMPI + " TIERFLOW_SECRET=s", "pmix 1 of 4 shared"},
		"PMIx of another":         {"PMIX_RANK=1 PMIX_NAMESPACE=prterun-a-1@1 PMIX_SERVER_URI4=prterun-a-1@0.0;tcp4://10.0.0.1:1 TIERFLOW_SIZE=4", "pmix 1 of 4 shared"},
		"mpirun without its PMIx": {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 TIERFLOW_RENDEZVOUS=h:1 TIERFLOW_SECRET=s " + daemons, "other 1 of 4"},
		"srun --mpi=pmix":         {slurmPMIx, "pmix 1 of 4 shared"},
		"srun --mpi=pmi2":         {slurmStep + " " + hydra, "pmi 1 of 4 shared"},
		"mpiexec":                 {hydra, "pmi 1 of 4 shared"},
		"mpiexec of one":          {"PMI_FD=6 PMI_RANK=0 PMI_SIZE=1", "pmi 0 of 1"},
		"mpiexec in salloc":       {hydra + " " + daemons, "pmi 1 of 4 shared"},
		"mpiexec in srun pmix":    {hydra + " " + slurmPMIx, "pmi 1 of 4 shared"},
		"mpiexec -pmi-port":       {"PMI_PORT=vm:42513 PMI_ID=1", "pmi asks shared"},
		"plain srun":              {slurmStep + " TIERFLOW_SECRET=s", "slurm 1 of 4 at node0:16530"},
		"plain srun, port given":  {slurmStep + " TIERFLOW_PORT=4000 TIERFLOW_SECRET=s", "slurm 1 of 4 at node0:4000"},
		"plain srun, ports given": {slurmStep + " TIERFLOW_PORTS=4000-4000 TIERFLOW_SECRET=s", "slurm 1 of 4 at node0:4000"},
		"srun -n1":                {daemon, "none 0 of 1"},
		"a batch script":          {batch, "none 0 of 1"},
		"Kubernetes":              {"JOB_COMPLETION_INDEX=2 TIERFLOW_SIZE=4 TIERFLOW_RENDEZVOUS=j-0.s:7777 TIERFLOW_SECRET=s", "kubernetes 2 of 4"},
		"forced to be alone":      {openMPI + " TIERFLOW_LAUNCHER=none", "none 0 of 1"},
		"forced by name":          {openMPI + " " + slurmStep + " TIERFLOW_LAUNCHER=slurm", "slurm 1 of 4 at node0:16530"},
		"forced of two":           {hydra + " PMIX_RANK=0 PMIX_NAMESPACE=prte.1 PMIX_SERVER_URI3=a;tcp4://10.0.0.1:1 TIERFLOW_LAUNCHER=pmi", "pmi 1 of 4 shared"},
		"a flux job without PMI":  {"FLUX_TASK_RANK=1 FLUX_JOB_SIZE=2 TIERFLOW_RENDEZVOUS=h:1", "other 1 of 2"},
	} {
		l, err := Find(lookup(c.env))
		got := fmt.Sprintf("%s %d of %d", l.Name, l.Rank, l.Size)
		if l.Place != nil {
			got = l.Name + " asks"
		}
		if len(l.Rendezvous) > 0 {
			got += " at " + strings.Join(l.Rendezvous, ",")
		}
		if l.Share != nil {
			got += " shared"
		}
		if (l.Share == nil) != (l.Leave == nil) {
			t.Errorf("%s: share %v, leave %v", what, l.Share != nil, l.Leave != nil)
		}
		if err != nil || got != c.want || l.Origin == "" {
			t.Errorf("%s: got %q from %q, %v\nwant %q", what, got, l.Origin, err, c.want)
		}
	}
}

// What says that there are more ranks, and doesn't suffice, is an error that says how
// to give what is missing.
func TestFindErrors(t *testing.T) {
	for what, c := range map[string]struct {
		env  string
		want []string // one line each
	}{
		"unknown name":            {"TIERFLOW_LAUNCHER=pmi3", []string{`TIERFLOW_LAUNCHER="pmi3"; allowed are tierflow, torchrun, pmix, pmi, other, slurm, kubernetes, none`}},
		"size alone":              {"TIERFLOW_SIZE=4", []string{"TIERFLOW_RANK is missing"}},
		"PMIx without a size":     {"PMIX_RANK=1 PMIX_NAMESPACE=n SLURM_STEP_NUM_TASKS=1 PMIX_SERVER_URI3=a;tcp4://1.2.3.4:5", []string{"TIERFLOW_SIZE is missing"}},
		"mpirun without a server": {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4", []string{"TIERFLOW_RENDEZVOUS is missing: OMPI_COMM_WORLD_SIZE=4, and there is no process manager"}},
		"a size without a rank":   {"PMI_SIZE=4 TIERFLOW_RENDEZVOUS=h:1", []string{"PMI_RANK is missing"}},
		"a wrong URI":             {openMPI + " PMIX_SERVER_URI3=a;usock:/tmp/x", []string{`PMIX_SERVER_URI3="a;usock:/tmp/x": want NAME.RANK;tcp4://ADDRESS:PORT`}},
		"munge only":              {openMPI + " PMIX_SECURITY_MODE=munge", []string{`PMIX_SECURITY_MODE="munge": the PMIx server wants one of these, this rank can do native: use srun --mpi=pmi2`}},
		"a wrong rank":            {hydra + " PMI_RANK=4", []string{`PMI_RANK="4"; allowed are 0 to 3`}},
		"a wrong descriptor":      {hydra + " PMI_FD=x", []string{`PMI_FD="x"; allowed are 0 to`}},
		"a descriptor alone":      {"PMI_FD=6", []string{"PMI_SIZE is missing", "PMI_RANK is missing"}},
		"a wrong port":            {"PMI_PORT=vm PMI_ID=1", []string{`PMI_PORT="vm"; allowed is host:port`}},
		"no id":                   {"PMI_PORT=vm:1", []string{"PMI_ID is missing"}},
		"two launchers":           {hydra + " PMIX_RANK=0 PMIX_NAMESPACE=prte.1 PMIX_SERVER_URI3=a;tcp4://10.0.0.1:1", []string{"TIERFLOW_LAUNCHER=pmix or pmi says which"}},
		"no node list":            {"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1", []string{"SLURM_STEP_NODELIST is missing"}},
		"a cut node list":         {slurmStep + " SLURM_STEP_NODELIST=node[0-", []string{`SLURM_STEP_NODELIST="node[0-": want names and ranges such as node[01-16,20]`}},
		"arbitrary":               {slurmStep + " SLURM_DISTRIBUTION=arbitrary", []string{"SLURM_DISTRIBUTION=arbitrary does not say where rank 0 is"}},
		"a wrong step size":       {slurmStep + " SLURM_STEP_NUM_TASKS=many", []string{`SLURM_STEP_NUM_TASKS="many"`}},
		"a pod without a size":    {"JOB_COMPLETION_INDEX=0", []string{"TIERFLOW_SIZE is missing: the Job's completions", "TIERFLOW_RENDEZVOUS is missing: a pod"}},
		"a pod without address":   {"JOB_COMPLETION_INDEX=0 TIERFLOW_SIZE=4", []string{"TIERFLOW_RENDEZVOUS is missing: a pod of an Indexed Job finds rank 0 as"}},
		"other, and none there":   {"TIERFLOW_LAUNCHER=other", []string{"TIERFLOW_LAUNCHER=other, but there is no rank and size"}},
		"pmix, and none there":    {"TIERFLOW_LAUNCHER=pmix", []string{"PMIX_NAMESPACE is missing", "TIERFLOW_SIZE is missing", "PMIX_SERVER_URI3 is missing"}},
	} {
		l, err := Find(lookup(c.env))
		if err == nil {
			t.Errorf("%s: %+v, no error", what, l)
			continue
		}
		if lines := strings.Split(err.Error(), "\n"); !slices.EqualFunc(lines, c.want, strings.Contains) {
			t.Errorf("%s\ngot  %q\nwant %q", what, lines, c.want)
		}
	}
}

// No environment that tells of several ranks makes a job of one.
func FuzzFind(f *testing.F) {
	for _, env := range []string{hydra, openMPI, slurmPMIx, slurmStep, batch, "JOB_COMPLETION_INDEX=1 TIERFLOW_SIZE=2"} {
		f.Add(env)
	}
	sizes := []string{"TIERFLOW_SIZE", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "FLUX_JOB_SIZE"}
	f.Fuzz(func(t *testing.T, env string) {
		get := lookup(env)
		l, err := Find(get)
		if err != nil || l.Size > 1 || l.Place != nil || get(envLauncher) != "" {
			return
		}
		for _, name := range sizes {
			if n, err := strconv.Atoi(get(name)); get(name) != "" && (err != nil || n > 1) && l.Name == None {
				t.Errorf("%s=%q, and a job of one rank", name, get(name))
			}
		}
	})
}
