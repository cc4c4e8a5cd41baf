package launcher

import (
	"hash/fnv"
	"net"
	"strconv"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/ports"
)

// meetingPorts are for ranks of a Slurm step or of torchrun to meet, unless TIERFLOW_PORT or TIERFLOW_PORTS says
// otherwise: below Linux's ports of outgoing connections.
var meetingPorts = ports.Range{First: 15000, Last: 30999}

// hasSlurm: a step of several tasks. One of a single task is a job of one rank, with
// Slurm or without.
func hasSlurm(v *Vars) bool {
	n, err := strconv.Atoi(v.Get("SLURM_STEP_NUM_TASKS"))
	return v.Any("SLURM_STEP_NUM_TASKS") && (err != nil || n > 1)
}

func readSlurm(v *Vars, l *Launcher) {
	l.Origin = "SLURM_PROCID and SLURM_STEP_NUM_TASKS"
	l.Rank, l.Size = v.place("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
	if l.Size == 1 {
		return
	}
	l.Advice = "export one before srun, or use srun --mpi=pmi2, which needs none"
	if v.Any(envRendezvous) {
		return
	}
	if d := v.Get("SLURM_DISTRIBUTION"); d == "arbitrary" {
		v.Add("SLURM_DISTRIBUTION=%s does not say where rank 0 is: use srun --mpi=pmi2, or %s", d, envRendezvous)
		return
	}
	list := v.Get("SLURM_STEP_NODELIST")
	if list == "" {
		v.Add("SLURM_STEP_NODELIST is missing: names of the step's nodes, such as node[01-16,20]")
		return
	}
	hosts, err := parseHosts(list)
	if err != nil {
		v.Add("SLURM_STEP_NODELIST=%w", err)
		return
	}
	if port, ok := v.meetingPort(v.Get("SLURM_JOB_ID") + "." + v.Get("SLURM_STEP_ID")); ok {
		l.Rendezvous = []string{net.JoinHostPort(hosts[0], strconv.Itoa(port))}
	}
}

// meetingPort returns the port at which the ranks of a job meet that its launcher names so. Jobs on one node at
// the same time have different ones, most likely.
func (v *Vars) meetingPort(job string) (int, bool) {
	if v.Any(env.Port) {
		return v.Number(env.Port, 1, 65535)
	}
	among := meetingPorts
	if r, err := ports.Parse(v.Get(env.Ports)); err == nil && r.Len() > 0 { // others complain
		among = r
	}
	h := fnv.New32a()
	h.Write([]byte(job))
	return int(among.First) + int(h.Sum32()%uint32(among.Len())), true
}
