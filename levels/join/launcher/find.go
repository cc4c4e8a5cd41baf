package launcher

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
)

// Names of launchers, as TIERFLOW_LAUNCHER gives them.
const (
	Tierflow   = "tierflow"
	Torchrun   = "torchrun"
	PMIx       = "pmix"
	PMI        = "pmi"
	Other      = "other"
	Slurm      = "slurm"
	Kubernetes = "kubernetes"
	None       = "none"
)

// Variables of several launchers.
const (
	envLauncher   = env.Launcher
	envRank       = env.Rank
	envSize       = env.Size
	envFD         = env.RendezvousFD
	envRendezvous = env.Rendezvous
	envSecret     = env.Secret
)

// MaxText is the longest text of Share, in bytes.
const MaxText = 1000

// Launcher is who started this process, and what it says about the process.
type Launcher struct {
	Name   string // one of the names above
	Origin string // its variables, for people

	Rank levels.Rank
	Size int // ranks in the job; 0: [Launcher.Place] tells

	// Rendezvous holds host:port alternatives of rank 0, if variables tell them.
	Rendezvous []string
	// Advice says how to give a secret if nothing is shared. Empty: as everywhere.
	Advice string

	// Place asks the process manager for rank and size. nil: Rank and Size hold.
	Place func(ctx context.Context) (levels.Rank, int, error)
	// Share gives every rank the text of rank 0, at most [MaxText] bytes without
	// blanks. All ranks call it equally often, one call at a time in a process; what
	// the others give is ignored. nil: this launcher carries no text.
	Share func(ctx context.Context, text string) (string, error)
	// Leave tells the process manager of the good end of this rank; then Share fails.
	// It does nothing before the first Share or Place. nil if Share is.
	Leave func(ctx context.Context) error
}

// a way is one launcher's: how it is recognized, and read.
type way struct {
	name    string
	isThere func(v *Vars) bool
	read    func(v *Vars, l *Launcher)
}

// ways are asked in this order. TIERFLOW_SIZE alone is nobody's but tierflow's, after
// those whose size it may complete.
var ways = []way{
	{Tierflow, func(v *Vars) bool { return v.Any(envRank, envFD) }, readTierflow},
	{Torchrun, func(v *Vars) bool { return v.Any("RANK", "WORLD_SIZE") }, readTorchrun},
	{PMIx, func(v *Vars) bool { return hasPMIx(v) && !(hasPMI(v) && inner(v) == PMI) }, readPMIx},
	{PMI, hasPMI, readPMI},
	{Other, func(v *Vars) bool { return otherOf(v) != nil }, readOther},
	{Slurm, hasSlurm, readSlurm},
	{Kubernetes, func(v *Vars) bool { return v.Any("JOB_COMPLETION_INDEX") }, readKubernetes},
	{Tierflow, func(v *Vars) bool { return v.Any(envSize) }, readTierflow},
	{None, func(*Vars) bool { return true }, readNone},
}

// Names returns the values of TIERFLOW_LAUNCHER.
func Names() []string {
	var names []string
	for _, w := range ways {
		if !slices.Contains(names, w.name) {
			names = append(names, w.name)
		}
	}
	return names
}

// Find returns who started this process. It only reads variables. The error has a
// line for each missing or malformed one; the launcher is returned with it, as
// far as it is known.
func Find(getenv func(string) string) (Launcher, error) {
	v := NewVars(getenv)
	var l Launcher
	forced := v.Get(envLauncher)
	if forced != "" && !slices.Contains(Names(), forced) {
		v.Add("%s=%q; allowed are %s", envLauncher, forced, strings.Join(Names(), ", "))
		return l, v.Err()
	}
	if forced == "" && hasPMIx(v) && hasPMI(v) && inner(v) == "" {
		v.Add("PMIX_NAMESPACE=%q and PMI_FD or PMI_PORT are both there, from one launcher inside another; %s=%s or %s says which one counts",
			v.Get("PMIX_NAMESPACE"), envLauncher, PMIx, PMI)
		return l, v.Err()
	}
	for _, w := range ways {
		if w.name == forced || forced == "" && w.isThere(v) {
			l.Name = w.name
			w.read(v, &l)
			break
		}
	}
	if l.Name != None && v.All(envRendezvous, envSecret) {
		l.Share = nil // nobody needs to be asked
		if l.Place == nil {
			l.Leave = nil // there is no conversation to end
		}
	}
	return l, v.Err()
}

func readNone(_ *Vars, l *Launcher) {
	l.Origin, l.Size = "an environment without job variables", 1
}

func readTierflow(v *Vars, l *Launcher) {
	l.Origin = "TIERFLOW_ variables"
	l.Rank, l.Size = v.place(envRank, envSize)
}

func readTorchrun(v *Vars, l *Launcher) {
	l.Origin = "RANK and WORLD_SIZE"
	l.Rank, l.Size = v.place("RANK", "WORLD_SIZE")
	if v.Any(envRendezvous) || l.Size == 1 {
		return
	}
	host := v.Get("MASTER_ADDR")
	if host == "" {
		v.Add("MASTER_ADDR is missing: the host of rank 0")
	}
	port, ok := v.Number("MASTER_PORT", 1, 65535)
	if host != "" && ok {
		l.Rendezvous = v.besideTorch(host, port)
	}
}

// besideTorch returns where ranks meet that torchrun or one alike has told MASTER_ADDR and MASTER_PORT. torchrun
// listens at this port itself, or leaves it to torch.distributed in rank 0's process, so its ranks meet at
// another one, the same for all. Ranks started by others meet at MASTER_PORT, or if that is taken at the other.
func (v *Vars) besideTorch(host string, port int) (at []string) {
	id := v.Get("TORCHELASTIC_RUN_ID")
	if id == "" {
		at = append(at, net.JoinHostPort(host, strconv.Itoa(port)))
	}
	if other, ok := v.meetingPort(fmt.Sprintf("%s at %d", id, port)); ok {
		at = append(at, net.JoinHostPort(host, strconv.Itoa(other)))
	}
	return at
}

// an other launcher tells a rank its place and carries no text.
type other struct{ rank, size string }

var others = []other{
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"PMI_RANK", "PMI_SIZE"},
	{"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
	{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
}

func otherOf(v *Vars) *other {
	for i := range others {
		if v.Any(others[i].rank, others[i].size) {
			return &others[i]
		}
	}
	return nil
}

func readOther(v *Vars, l *Launcher) {
	o := otherOf(v)
	if o == nil {
		v.Add("%s=%s, but there is no rank and size of a launcher; allowed are %s and %s, and others alike",
			envLauncher, Other, others[0].rank, others[0].size)
		return
	}
	l.Origin = o.rank + " and " + o.size
	l.Rank, l.Size = v.place(o.rank, o.size)
	if l.Size != 1 {
		v.needRendezvous(o.size + "=" + v.Get(o.size) + ", and there is no process manager to ask")
	}
}

// needRendezvous complains if rank 0's address isn't told. why says what is known.
func (v *Vars) needRendezvous(why string) {
	if !v.Any(envRendezvous) {
		v.Add("%s is missing: %s; give it host:port of rank 0, and %s to all ranks, or run one rank with %s=%s",
			envRendezvous, why, envSecret, envLauncher, None)
	}
}

func readKubernetes(v *Vars, l *Launcher) {
	l.Origin = "JOB_COMPLETION_INDEX and " + envSize
	if v.Any(envSize) {
		l.Rank, l.Size = v.place("JOB_COMPLETION_INDEX", envSize)
	} else {
		v.Add("%s is missing: the Job's completions, or %s=%s for pods that work alone", envSize, envLauncher, None)
	}
	if l.Size != 1 {
		v.needRendezvous("a pod of an Indexed Job finds rank 0 as JOB-0.SERVICE:PORT, through a headless service")
	}
}
