package doctor

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/levels/memory"
)

// unlimited stands for no limit.
const unlimited = -1

// facts are a rank's knowledge of itself, and its findings about the others.
type facts struct {
	Rank     int           `json:"rank"`
	Launcher string        `json:"launcher"`
	Started  string        `json:"started"` // who started it, and where it meets the others
	Joined   time.Duration `json:"joined_ns"`

	Host   string `json:"host"`
	Node   string `json:"node"`
	PID    int    `json:"pid"`
	User   int    `json:"user"`
	System string `json:"system"` // operating system, processor, kernel

	Version  string `json:"version"`
	Compiler string `json:"go"`
	Threads  int    `json:"gomaxprocs"`

	CPUs      string  `json:"cpus"`      // that it may run on: 0-3,8
	CPUCount  int     `json:"cpu_count"` // of these
	HostCPUs  int     `json:"host_cpus"`
	Quota     float64 `json:"cpu_quota"` // CPUs of its control group; 0: all
	Processor string  `json:"processor"`
	NUMA      string  `json:"numa"` // domain; empty: unknown, or several

	// Limits; -1: none.
	Files        int64 `json:"nofile"`
	FilesHard    int64 `json:"nofile_hard"`
	Locked       int64 `json:"memlock_bytes"`
	AddressSpace int64 `json:"as_bytes"`
	SharedFiles  int64 `json:"shm_bytes"` // size of /dev/shm; -1: unknown
	Available    int64 `json:"available_bytes"`

	Congestion string `json:"congestion"`
	Ptrace     string `json:"ptrace_scope"` // of Yama; empty: the kernel has none
	// Readable: all ranks of the node may copy from this rank's memory.
	Readable bool `json:"readable"`

	// Secured is how connections between nodes are kept from others; empty: they are plain.
	Secured  string    `json:"secured"`
	Expires  time.Time `json:"certificate_expires"`   // zero: the rank has no certificate
	SealRate float64   `json:"seal_bytes_per_second"` // of one core, the slower of sealing and opening; 0: not measured
	HasAES   bool      `json:"aes_instructions"`      // of the processor
	Entrust  bool      `json:"launcher_knows_secret"` // the job's secret came by the launcher

	Addresses []address `json:"addresses"`
	Routes    []route   `json:"routes"`
	Unreached []failure `json:"unreached"`
	Narrow    []narrow  `json:"narrow"`
	Untried   int       `json:"untried"` // ranks left out for lack of time
	Error     string    `json:"error"`   // that ended the examination on this rank
}

// address is one of this host's.
type address struct {
	Address   string `json:"address"`
	Interface string `json:"interface"`
	Use       string `json:"use"` // the order of its offer, or why it is not offered
}

// factsOf collects all facts known without others. job is nil outside of one.
func factsOf(cfg *join.Config, job *join.Job) *facts {
	host, _ := os.Hostname()
	l, _ := launcher.Find(os.Getenv)
	f := &facts{
		Rank: int(cfg.Rank), Launcher: l.Name, Started: cfg.String(),
		Host: host, Node: host, PID: os.Getpid(), User: os.Geteuid(),
		System:  strings.TrimSpace(fmt.Sprintf("%s/%s %s", runtime.GOOS, runtime.GOARCH, kit.KernelFile("/proc/sys/kernel/osrelease"))),
		Version: kit.Version(), Compiler: runtime.Version(), Threads: runtime.GOMAXPROCS(0),
		HostCPUs: runtime.NumCPU(), Processor: kit.ProcessorModel(), NUMA: cfg.NUMA,
		Congestion: kit.Congestion(), Ptrace: kit.KernelFile("/proc/sys/kernel/yama/ptrace_scope"),
		Readable: true, Quota: quota(kit.KernelFile("/sys/fs/cgroup/cpu.max")),
		Available: cmp.Or(memory.System(), -1),
	}
	var offered []string
	var how join.Offer
	if job != nil {
		self := job.Peers[job.Rank]
		f.Node, f.NUMA = job.Topology.NodeName(job.Rank), self.NUMA
		f.seal(cfg, job)
		how = self.Offer
		for _, a := range self.Addrs {
			offered = append(offered, a.Addr().String())
		}
	}
	f.Addresses = addresses(offered, how, cfg.Interfaces)
	f.readSystem()
	return f
}

// sealTime is how long sealing is measured, and opening.
const sealTime = 10 * time.Millisecond

// seal finds out how connections between nodes are sealed, if they are.
func (f *facts) seal(cfg *join.Config, job *join.Job) {
	if f.Secured = job.Secured(); f.Secured == "" {
		return
	}
	state, _ := job.TLSState()
	f.Expires, f.HasAES = state.Expires, seal.IsFast()
	f.Entrust = cfg.Share != nil && cfg.Secret == ""
	if sealed, opened, err := seal.Rate(sealTime); err == nil {
		f.SealRate = min(sealed, opened)
	}
}

// addresses lists this host's, offered ones first. offered is in order; nil outside of a job.
func addresses(offered []string, how join.Offer, filters []string) []address {
	nics, err := net.Interfaces()
	if err != nil {
		return []address{{Use: err.Error()}}
	}
	var all []address
	for _, nic := range nics {
		addrs, err := nic.Addrs()
		if err != nil {
			continue // the interface has gone since
		}
		for _, a := range addrs {
			ip, _, err := net.ParseCIDR(a.String())
			if err != nil {
				continue
			}
			all = append(all, address{ip.String(), nic.Name, use(ip, nic.Flags, offered, how, filters)})
		}
	}
	for i, o := range offered {
		if !slices.ContainsFunc(all, func(a address) bool { return a.Address == o }) {
			all = append(all, address{o, "advertised", "offered as " + ordinal(i)})
		}
	}
	place := func(a address) uint { return uint(slices.Index(offered, a.Address)) } // -1 is the largest then: other addresses come last
	slices.SortStableFunc(all, func(a, b address) int { return cmp.Compare(place(a), place(b)) })
	return all
}

// use says in which order an address is offered, or why it isn't.
func use(ip net.IP, flags net.Flags, offered []string, how join.Offer, filters []string) string {
	switch i := slices.Index(offered, ip.String()); {
	case i >= 0 && ip.IsLoopback():
		return fmt.Sprintf("offered as %s, for ranks of this host", ordinal(i))
	case i >= 0:
		return "offered as " + ordinal(i)
	case flags&net.FlagUp == 0:
		return "not offered: the interface is down"
	case ip.To4() == nil && ip.IsLinkLocalUnicast():
		return "not offered: link-local"
	case offered == nil:
		return ""
	case how == join.Advertised:
		return "not offered: TIERFLOW_ADVERTISE has others"
	case len(filters) > 0:
		return "not offered: TIERFLOW_INTERFACES=" + strings.Join(filters, ",")
	case !slices.ContainsFunc(offered, func(a string) bool { return !net.ParseIP(a).IsLoopback() }):
		return "not offered: all ranks are on this host"
	}
	return "not offered"
}

// ordinal returns 1st, 2nd, … for 0, 1, ….
func ordinal(i int) string {
	switch i {
	case 0:
		return "1st"
	case 1:
		return "2nd"
	case 2:
		return "3rd"
	}
	return strconv.Itoa(i+1) + "th"
}

// quota reads cpu.max of a control group: microseconds of CPU, of so many.
func quota(text string) float64 {
	used, period, _ := strings.Cut(text, " ")
	u, err := strconv.ParseFloat(used, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err != nil || err2 != nil || p <= 0 || u <= 0 {
		return 0
	}
	return u / p
}
