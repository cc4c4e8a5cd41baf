package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/launcher"
)

// maxRanks bounds the ranks of a job.
const maxRanks = 1 << 20

// Values of Options.Stdin beside a rank.
const (
	stdinAll  = "all"
	stdinNone = "none"
)

// Options describes one job. The zero value of every field except Program is usable.
type Options struct {
	// Ranks is the number of ranks. Default: the sum of all slots, or without hosts the number of CPUs.
	Ranks int

	// Hosts lists nodes as host[:slots],host[:slots]…; slots default to 1, an IPv6 address stands in brackets, a host
	// named twice has the slots of both. Hosts and Hostfile exclude each other. Without either, and without Launcher, a
	// Slurm allocation gives its hosts and tasks. Else the job runs on one node of this machine with as many slots as it
	// has ranks.
	Hosts string

	// Hostfile names a file with one "host[:slots]" or "host slots=N" per line and # comments; "-" is the launcher's
	// standard input.
	Hostfile string

	// HostsCommand is a line for /bin/sh that prints hosts, as in a Hostfile: for machines that come and go. It excludes
	// Hosts and Hostfile. With MaxRestarts the launcher runs it again, or reads the Hostfile again, when a host is lost, and
	// moves its ranks to hosts with free slots.
	HostsCommand string

	// Launcher says how an agent is started: "local" (a child process; with several hosts this
	// machine plays them all), "ssh" (no questions asked: keys and known hosts have to be there),
	// or another command with arguments, followed by the host and the agent's command line, as in
	// rsh. Default: local without hosts, srun for those of an allocation, else ssh.
	Launcher string

	// Agent is the command line of an agent. Default: the path of this executable, and "agent".
	Agent []string

	// Map places ranks: "block" fills the nodes in order, "rr" deals ranks round robin. Default: block.
	Map string

	// Min lets the job go on while so many ranks have not failed: for programs able to go on
	// without the others, see planner.Comm.Shrink. Default: all.
	Min int

	// MaxRestarts bounds the processes started, in all, in the place of failed ones, each on the
	// same host as the one before it, or on another one if that host is lost, see HostsCommand: for programs letting them in, see package planner/elastic. The job
	// goes on meanwhile. A process that the others have left out, because it hangs, is ended first.
	// When a process has ended well no more are started. Default: none.
	MaxRestarts int

	// Oversubscribe allows more ranks than slots.
	Oversubscribe bool

	// Bind says on which processors of its host a rank may run: "share" (an equal part of them,
	// whole cores if there are enough), "core" (one core), "numa" (one NUMA domain), "none".
	// Default: TIERFLOW_BIND, in Env or on the host; else shares if there is a processor for each
	// rank, none if one machine plays several hosts.
	Bind string

	// NodeNames sets TIERFLOW_NODE to the host's name on every rank; it is always set when the launcher is local and
	// there are several hosts.
	NodeNames bool

	// Timeout ends the job this long after Run was called. First each rank of package planner
	// has a second to print its state and the line of its program. Default: none.
	Timeout time.Duration

	// Grace is the time for the ranks of a job that gets SIGINT, SIGTERM or SIGHUP to end by themselves. Default: 30 s.
	Grace time.Duration

	// AgentTimeout bounds how long an agent may take to answer. Default: 30 s.
	AgentTimeout time.Duration

	// NoPrefix passes the ranks' output byte by byte, as it comes. Default: whole lines, "[rank] " in front; a line is
	// cut every 16 MiB. A carriage return ends a line, too. A terminal shows what has come of a line after 100 ms:
	// a prompt. The rest follows there, or on a line of its own if another rank has written meanwhile.
	NoPrefix bool

	// Timestamps puts the time before each line, when it came to the launcher. It excludes NoPrefix.
	Timestamps bool

	// LogDir names a folder on the launcher's host, made if need be, for a file of each rank:
	// rank.00.log and so on. They hold both of the rank's streams, in whole lines as they come,
	// without "[rank] ". Default: none.
	LogDir string

	// TraceEvery lets ranks of package planner keep the steps of one call of so many, and puts
	// them into TraceDir, an existing folder on the launcher's host: r0.trace and so on, of each
	// rank after the close of its communicator of all ranks. Default: none.
	TraceEvery int
	TraceDir   string

	// DumpDir is a folder for what the launcher knows of a rank's death, beside the snapshots that
	// ranks of package planner keep there, see env.DumpDir. It is made if need be. Default: none.
	DumpDir string

	// Stdin says which ranks read Run's stdin: "all", "none" or a rank's number; the others read
	// nothing. A rank not reading lets the others of "all" wait, unless it closes its input.
	// Default: rank 0, or none if Hostfile is "-".
	Stdin string

	// Export lists variables for ranks on all hosts, NAME=VALUE, or NAME with its value in Env.
	Export []string

	// Program is the program of every rank, and its arguments. It is looked up on each host.
	Program []string

	// Dir is the ranks' working directory. Default: the current one.
	Dir string

	// Env is the launcher's environment, key=value. Local ranks get all of it. Ranks on other
	// hosts get parts of it on top of their host's: TIERFLOW_* but not TIERFLOW_ADVERTISE, OMP_*, the settings of Go
	// programs (GOMAXPROCS, GOGC, GOMEMLIMIT, GODEBUG, GOTRACEBACK), and Export. In TIERFLOW_PLAN
	// agents replace words of other libraries, see [rules.ExpandWords]. Default: os.Environ().
	Env []string
}

const (
	launcherLocal = "local"
	launcherSSH   = "ssh"
	launcherSlurm = "srun --overlap --unbuffered --mpi=none --quiet -N1 -n1 -w" // within an allocation
	mapBlock      = "block"
	mapRoundRobin = "rr"
)

// withDefaults checks the options and fills every field with a default independent of hosts. All
// complaints come at once.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	complain := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(o.Program) == 0 || o.Program[0] == "" {
		complain("no program")
	}
	if o.Ranks < 0 || o.Ranks > maxRanks {
		complain("%d ranks: give 1 to %d", o.Ranks, maxRanks)
	}
	if o.Min < 0 {
		complain("at least %d ranks: give 1 or more, 0 for all", o.Min)
	}
	if o.MaxRestarts < 0 {
		complain("%d restarts: give 0 or more", o.MaxRestarts)
	}
	if o.Hosts != "" && o.Hostfile != "" {
		complain("both a host list %q and a host file %q: give one", o.Hosts, o.Hostfile)
	}
	if o.HostsCommand != "" && o.Hosts+o.Hostfile != "" {
		complain("both a command for hosts %q, and hosts %s%s: give one", o.HostsCommand, o.Hosts, o.Hostfile)
	}
	if o.Map == "" {
		o.Map = mapBlock
	}
	if o.Map != mapBlock && o.Map != mapRoundRobin {
		complain("map %q: allowed are %s and %s", o.Map, mapBlock, mapRoundRobin)
	}
	if o.Timeout < 0 || o.AgentTimeout < 0 || o.Grace < 0 {
		complain("timeouts %v, %v, %v: not negative, please", o.Timeout, o.AgentTimeout, o.Grace)
	}
	if o.Grace == 0 {
		o.Grace = 30 * time.Second
	}
	if o.AgentTimeout == 0 {
		o.AgentTimeout = 30 * time.Second
	}
	if o.TraceEvery < 0 || (o.TraceEvery > 0) != (o.TraceDir != "") {
		complain("a trace of one call of %d in folder %q: give both, and a number from 1 on", o.TraceEvery, o.TraceDir)
	}
	if o.NoPrefix && o.Timestamps {
		complain("timestamps need whole lines: they exclude output byte by byte")
	}
	errs = append(errs, o.fromProcess(), o.checkExport())
	if o.Stdin == "" {
		o.Stdin = "0"
		if o.Hostfile == "-" {
			o.Stdin = stdinNone // the hosts are read from it
		}
	}
	if o.Hostfile == "-" && o.Stdin != stdinNone {
		complain("standard input for ranks %s: it holds the hosts", o.Stdin)
	}
	if o.Bind == "" {
		o.Bind = o.getenv(env.Bind)
	}
	errs = append(errs, checkBinding(o.Bind))
	if strings.TrimSpace(o.Launcher) == "" {
		errs = append(errs, o.chooseLauncher())
	}
	return o, errors.Join(errs...)
}

// chooseLauncher fills in the launcher, and the hosts of a Slurm allocation if no
// others are given.
func (o *Options) chooseLauncher() error {
	o.Launcher = launcherSSH
	if o.Hosts+o.Hostfile+o.HostsCommand != "" {
		return nil
	}
	o.Launcher = launcherLocal
	slots, err := launcher.Allocation(o.getenv)
	if err != nil {
		return fmt.Errorf("%w; without it give --hosts, or --launcher %s", err, launcherLocal)
	}
	for _, s := range slots {
		o.Launcher = launcherSlurm
		if o.Hosts != "" {
			o.Hosts += ","
		}
		o.Hosts += fmt.Sprintf("%s:%d", s.Host, s.Slots)
	}
	return nil
}

// getenv returns the last value of a variable, as os.Getenv would in Env.
func (o *Options) getenv(name string) string {
	value, _ := o.lookupEnv(name)
	return value
}

// lookupEnv is os.LookupEnv in Env.
func (o *Options) lookupEnv(name string) (value string, ok bool) {
	for _, kv := range slices.Backward(o.Env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// fromProcess fills the fields with properties of this process as their defaults.
func (o *Options) fromProcess() (err error) {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if len(o.Agent) == 0 {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("path of this executable: %w", err)
		}
		o.Agent = []string{self, "agent"}
	}
	return nil
}

func (o *Options) isLocal() bool { return o.Launcher == launcherLocal }

// checkExport complains about variables that can't be exported.
func (o *Options) checkExport() error {
	var errs []error
	for _, x := range o.Export {
		name, _, set := strings.Cut(x, "=")
		_, has := o.lookupEnv(name)
		switch {
		case name == "" || strings.HasPrefix(name, "-") || strings.ContainsRune(x, 0):
			errs = append(errs, fmt.Errorf("variable %q: give NAME, or NAME=VALUE", x))
		case slices.Contains(jobKeys, name):
			errs = append(errs, fmt.Errorf("variable %s: the launcher sets it for each rank", name))
		case !set && !has:
			errs = append(errs, fmt.Errorf("variable %s is not in the launcher's environment: set it, or give %s=VALUE", name, name))
		}
	}
	return errors.Join(errs...)
}
