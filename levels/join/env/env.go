// Package env is the list of all environment variables read or set by tierflow, and
// finds misspelt ones. It reads no environment itself.
//
//	for _, u := range env.Unknown(os.Environ()) {
//		fmt.Fprintln(os.Stderr, u)
//	}
package env

import (
	"fmt"
	"slices"
	"strings"
)

// Prefix begins the names of all variables.
const Prefix = "TIERFLOW_"

// Whose says whose value of a variable counts in a job of processes.
type Whose uint8

// The answers.
const (
	EachRanks    Whose = iota // each rank's own
	Rank0s                    // rank 0's, for all ranks
	Equal                     // all ranks have the same: joining fails otherwise, or the job's files don't fit together
	TheLaunchers              // tierflow run reads it, or sets it for its ranks
)

// String names whose value counts.
func (w Whose) String() string {
	return [...]string{EachRanks: "each rank's", Rank0s: "rank 0's", Equal: "equal", TheLaunchers: "the launcher's"}[w]
}

// Variable is one of the variables.
type Variable struct {
	Name   string
	Whose  Whose
	Option string // the field of planner.Options that says the same; empty: there is none
	What   string // what it is for, and what holds without it
}

// The names of the variables. What each is for is in [All].
const (
	Advertise    = "TIERFLOW_ADVERTISE"
	Bind         = "TIERFLOW_BIND"
	BlameFD      = "TIERFLOW_BLAME_FD"
	CallTimeout  = "TIERFLOW_CALL_TIMEOUT"
	CheckNaN     = "TIERFLOW_CHECK_NAN"
	Congestion   = "TIERFLOW_CONGESTION"
	Door         = "TIERFLOW_DOOR"
	Dump         = "TIERFLOW_DUMP"
	DumpDir      = "TIERFLOW_DUMP_DIR"
	Effort       = "TIERFLOW_EFFORT"
	Interfaces   = "TIERFLOW_INTERFACES"
	JoinTimeout  = "TIERFLOW_JOIN_TIMEOUT"
	Launcher     = "TIERFLOW_LAUNCHER"
	Lib          = "TIERFLOW_LIB"
	Links        = "TIERFLOW_LINKS"
	LobbyFD      = "TIERFLOW_LOBBY_FD"
	LocalRank    = "TIERFLOW_LOCAL_RANK"
	LocalSize    = "TIERFLOW_LOCAL_SIZE"
	Machine      = "TIERFLOW_MACHINE"
	Managed      = "TIERFLOW_MANAGED"
	Metrics      = "TIERFLOW_METRICS"
	MPI          = "TIERFLOW_MPI"
	MPIAfter     = "TIERFLOW_MPI_AFTER"
	MPIMarks     = "TIERFLOW_MPI_MARKS"
	MPIVerbose   = "TIERFLOW_MPI_VERBOSE"
	Node         = "TIERFLOW_NODE"
	NUMA         = "TIERFLOW_NUMA"
	Plan         = "TIERFLOW_PLAN"
	Port         = "TIERFLOW_PORT"
	Ports        = "TIERFLOW_PORTS"
	Profile      = "TIERFLOW_PROFILE"
	Rank         = "TIERFLOW_RANK"
	Recorder     = "TIERFLOW_RECORDER"
	Rendezvous   = "TIERFLOW_RENDEZVOUS"
	RendezvousFD = "TIERFLOW_RENDEZVOUS_FD"
	Restarts     = "TIERFLOW_RESTARTS"
	Rules        = "TIERFLOW_RULES"
	Secret       = "TIERFLOW_SECRET"
	Site         = "TIERFLOW_SITE"
	Size         = "TIERFLOW_SIZE"
	StateFD      = "TIERFLOW_STATE_FD"
	Table        = "TIERFLOW_TABLE"
	TLS          = "TIERFLOW_TLS"
	Trace        = "TIERFLOW_TRACE"
	Tune         = "TIERFLOW_TUNE"
)

// variables are those of programs and commands, from users or from tierflow run.
var variables = []Variable{
	{Advertise, EachRanks, "", "IP addresses at which ranks on other hosts dial this rank"},
	{Bind, TheLaunchers, "", "processors of a rank, as --bind"},
	{BlameFD, TheLaunchers, "", "descriptor at which a rank says whose failure it has met"},
	{CallTimeout, EachRanks, "CallTimeout", "how long a call may wait, such as 30s; without it as long as its context"},
	{CheckNaN, EachRanks, "CheckNaN", "1: a NaN in a reduction is an error that names rank and element"},
	{Congestion, EachRanks, "Congestion", "TCP congestion control between nodes, such as reno; without it the system's"},
	{Door, EachRanks, "", "folder of the socket at which ps, top and diagnose ask a rank; off: none"},
	{Dump, EachRanks, "DumpOnQuit", "1: SIGQUIT prints what ranks are in, and the job goes on; 0: SIGQUIT is the program's"},
	{DumpDir, EachRanks, "DumpDir", "folder for what ranks are in when the job stands still or fails"},
	{Effort, Rank0s, "Effort", "measure: collectives try the best plans when they are made; without it estimate"},
	{Interfaces, EachRanks, "", "network interfaces to use, in the order to try them; without it all"},
	{JoinTimeout, EachRanks, "", "how long ranks may take to come; without it 30s"},
	{Launcher, EachRanks, "", "which launcher is asked; without it the one that the variables speak of"},
	{Lib, EachRanks, "", "where libtierflow.so is; without it beside the MPI shim"},
	{Links, Rank0s, "Links", "name of the links between nodes, such as 10gbit"},
	{LobbyFD, TheLaunchers, "", "descriptor for processes that wait to join a running job"},
	{LocalRank, TheLaunchers, "", "the rank among those of its node"},
	{LocalSize, TheLaunchers, "", "how many ranks its node has"},
	{Machine, Rank0s, "Machine", "what the machine is like: auto, off, measure, measure:FILE or a file; without it auto"},
	{Managed, Rank0s, "Managed", "1: ranks may act outside of the job: ps, dumps, processors, kept files"},
	{Metrics, TheLaunchers, "", "address at which each host serves its ranks to Prometheus, such as :9100"},
	{MPI, Rank0s, "", "which calls of an MPI program are tierflow's: on, off, or such as allreduce:4KiB"},
	{MPIAfter, Rank0s, "", "which use of a request is tierflow's first; without it 2"},
	{MPIMarks, TheLaunchers, "", "folder in which tierflow mpi run sees that ranks have the MPI shim"},
	{MPIVerbose, Rank0s, "", "1: at the end rank 0 prints whose its calls were, and why; explain: also how each is done"},
	{Node, EachRanks, "", "name of the rank's node; without it the host"},
	{NUMA, EachRanks, "", "name of the rank's NUMA domain"},
	{Plan, Rank0s, "Plan", "forced plans, such as bcast:shape=flat"},
	{Port, EachRanks, "", "port at which rank 0 listens under srun and torchrun"},
	{Ports, EachRanks, "", "range of ports of all listeners, such as 40000-40099"},
	{Profile, Rank0s, "Profile", "file for what the job calls; summary: rank 0 prints the time by collective and size"},
	{Rank, EachRanks, "", "the rank"},
	{Recorder, EachRanks, "Recorder", "file for a rank's last events; %r is the rank"},
	{Rendezvous, Equal, "", "host:port of rank 0"},
	{RendezvousFD, TheLaunchers, "", "descriptor at which rank 0 listens"},
	{Restarts, TheLaunchers, "", "how many processes were started before in the place of this one"},
	{Rules, Rank0s, "Rules", "file of rules that decide plans"},
	{Secret, Equal, "", "the job's secret"},
	{Site, EachRanks, "", "name of the site of the rank's node"},
	{Size, Equal, "", "how many ranks there are"},
	{StateFD, TheLaunchers, "", "descriptor at which the launcher asks what a rank is in"},
	{Table, Rank0s, "Table", "file of a decision table, or off; without it the one that tune has kept"},
	{TLS, Equal, "TLS", "sealing between nodes: job, cert=F,key=F,ca=F or off; without it off"},
	{Trace, Equal, "Trace", "folder for the steps of a sample of calls, such as DIR:every=16"},
	{Tune, TheLaunchers, "", "how long tierflow run tunes before the job, such as 30s"},
}

// WhoseIs says whose value of a known variable counts; known is false for any other name.
func WhoseIs(name string) (w Whose, known bool) {
	for _, v := range variables {
		if v.Name == name {
			return v.Whose, true
		}
	}
	return 0, false
}

// ofTests are the variables of the module's tests.
var ofTests = []string{
	"TIERFLOW_CHAOS",
	"TIERFLOW_CHAOS_PHASE",
	"TIERFLOW_CHAOS_SEED",
	"TIERFLOW_CLUSTER",
	"TIERFLOW_RANDOM_TIME",
}

// testPrefix begins more names of tests.
const testPrefix = Prefix + "TEST_"

// All returns all variables, sorted by name, without those of tests.
func All() []Variable { return slices.Clone(variables) }

// Names returns the names of all variables, sorted, without those of tests.
func Names() (all []string) {
	for _, v := range variables {
		all = append(all, v.Name)
	}
	return all
}

// NamesOfTests returns those that only tests read, but for TIERFLOW_TEST_…, which are
// all theirs.
func NamesOfTests() []string { return slices.Clone(ofTests) }

// UnknownName is a name with the beginning of a variable's, but of no variable.
type UnknownName struct {
	Name    string
	Nearest string // the variable with the most similar name
}

// String tells the fault.
func (u UnknownName) String() string {
	return fmt.Sprintf("%s has no effect: no such variable is known, the nearest is %s", u.Name, u.Nearest)
}

// isOfService reports whether a name is one in pods of Kubernetes for a Service called tierflow, such as
// TIERFLOW_SERVICE_HOST, TIERFLOW_SERVICE_PORT_JOIN or TIERFLOW_PORT_80_TCP_ADDR. A regular expression
// would cost each program 0.2 MB and 0.1 ms.
func isOfService(name string) bool {
	name = strings.TrimPrefix(name, Prefix)
	port, is := strings.CutPrefix(name, "PORT_")
	if !is {
		return name == "SERVICE_HOST" || strings.HasPrefix(name, "SERVICE_PORT")
	}
	number, rest, _ := strings.Cut(port, "_")
	return number != "" && strings.Trim(number, "0123456789") == "" &&
		slices.ContainsFunc([]string{"TCP", "UDP", "SCTP"}, func(p string) bool { return strings.HasPrefix(rest, p) })
}

// Unknown returns the unknown names of an environment, sorted. Its items are NAME=VALUE.
func Unknown(environ []string) []UnknownName {
	var all []UnknownName
	for _, item := range environ {
		name, _, _ := strings.Cut(item, "=")
		_, known := WhoseIs(name)
		if known || !strings.HasPrefix(name, Prefix) || strings.HasPrefix(name, testPrefix) || isOfService(name) ||
			slices.Contains(ofTests, name) {
			continue
		}
		all = append(all, UnknownName{name, nearest(name)})
	}
	slices.SortFunc(all, func(a, b UnknownName) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(all)
}

// nearest returns the first of the names within the fewest changes.
func nearest(name string) string {
	return slices.MinFunc(Names(), func(a, b string) int { return changes(name, a) - changes(name, b) })
}

// changes counts the letters to insert, drop or replace to make b of a: Levenshtein's
// distance (1965), by the table of Wagner and Fischer (1974), one row at a time.
func changes(a, b string) int {
	row := make([]int, len(b)+1) // changes from a[:i] to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0] // of the row before
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
