package peers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/disturb"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Names of the compared libraries, as the table has them.
const (
	ourselves = "tierflow"
	openMPI   = "Open MPI"
	mpich     = "MPICH"
	gloo      = "Gloo"
)

// cells are collectives and sizes: a cell for each pair, one for a barrier.
type cells struct {
	ops   []string
	bytes []int64
}

// arguments returns the cells as two lists of a command line.
func (c cells) arguments() (ops, bytes string) {
	texts := make([]string, len(c.bytes))
	for i, n := range c.bytes {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(c.ops, ","), strings.Join(texts, ",")
}

// setting is a library and its parameters: one column of the comparison.
type setting struct {
	library string
	variant string
	mca     []string // Open MPI's parameters: name, value, name, value …
	genv    []string // MPICH's variables of the environment: name, value, name, value …
	plan    string   // tierflow's of the forced schedule; empty: there is none
	only    *cells   // nil: all
	table   bool     // tierflow's: plans of the decision table
	alloc   bool     // tierflow's: buffers from planner.Alloc
	local   bool     // tierflow's: goroutine ranks of one process
	measure bool     // tierflow's: the machine is measured once and kept, and plans are chosen by price
	noisy   bool     // a rank loses its processor at times
	shimmed bool     // an MPI's: with tierflow's shim
}

// Our own settings.
const (
	tuned       = "tuned"
	asItIs      = "built-in rule"
	withAlloc   = "built-in rule, Alloc"
	asGoroutine = "goroutine ranks"
	asMeasured  = "measured machine"
)

// tierflow without a machine, and as it is by default.
var (
	byRule    = setting{library: ourselves, variant: asItIs}
	byMachine = setting{library: ourselves, variant: asMeasured, measure: true}
)

func (s setting) String() string { return s.library + " " + s.variant }

// cellsOf returns the cells to measure the setting on.
func (s setting) cellsOf(all cells) cells {
	if s.only != nil {
		return *s.only
	}
	return all
}

// site says on which nodes and by which programs processes are started.
type site struct {
	nodes, perNode int
	tierflow       string        // the program tierflow
	lab            string        // this program
	folder         string        // of drivers and launchers
	rsh            string        // command line in place of ssh; empty on one node
	counts         string        // elements of each rank's block; empty: blocks are equal
	single         bool          // a sample is one call
	bind           string        // of a rank: bindNone or bindCore
	noise          disturb.Noise // of noisy settings; without a length: nobody is disturbed
	spin           bool          // Open MPI's ranks spin too
	measured       bool          // tierflow on a measured machine too
	rules          bool          // the sweep is for rules of other libraries alone, and HAN is left out
	so             string        // libtierflow.so, for shims
}

// Bindings of a rank, as all launchers call them.
const (
	bindNone = "none"
	bindCore = "core"
)

// regime is the driver's word for single calls or calls back to back.
func (s site) regime() string {
	if s.single {
		return "single"
	}
	return "-"
}

func (s site) ranks() int { return s.nodes * s.perNode }

// driver returns the path of a library's built driver.
func (s site) driver(library string) string {
	return s.folder + "/" + peer{name: library}.word()
}

// shim returns the path of an MPI's built shim.
func (s site) shim(library string) string { return s.driver(library) + "-shim.so" }

// hosts returns the nodes as launchers take them, with the number of ranks on each.
func (s site) hosts() string {
	all := make([]string, s.nodes)
	for i := range all {
		all[i] = fmt.Sprintf("node%d:%d", i, s.perNode)
	}
	return strings.Join(all, ",")
}

// jobCommand returns the command that starts a setting's job on the first node. store
// is an empty folder.
func (s site) jobCommand(of setting, c cells, each time.Duration, store string) []string {
	ops, bytes := c.arguments()
	var before []string // the program
	if of.noisy {       // the rank in the middle passes on much in most trees and chains
		before = s.noise.Words(s.lab, s.ranks()/2)
	}
	driver := append(slices.Clone(before),
		s.driver(of.library), ops, bytes, strconv.FormatFloat(each.Seconds(), 'g', -1, 64),
		strconv.Itoa(s.nodes), strconv.Itoa(s.perNode), store, cmp.Or(s.counts, "-"), s.regime(),
	)
	switch of.library {
	case openMPI:
		words := s.mpirun(of.mca)
		if of.shimmed {
			words = append(words, "-x", "LD_PRELOAD="+s.shim(openMPI), "-x", env.Lib+"="+s.so, "-x", env.Managed+"=1")
		}
		return append(words, driver...)
	case mpich:
		if of.shimmed {
			of.genv = append(slices.Clone(of.genv), "LD_PRELOAD", s.shim(mpich), env.Lib, s.so, env.Managed, "1")
		}
		return append(s.hydra(of.genv), driver...)
	case gloo:
		return append(s.tierflowRun(), driver...)
	}
	environ := []string{env.Machine + "=" + planner.MachineOff}
	if of.measure {
		environ = []string{env.Machine + "=" + planner.MachineAuto, "XDG_CACHE_HOME=" + s.folder}
	}
	before = slices.Concat([]string{"env"}, environ, before)
	words := append(before, s.tierflow, "bench", "coll", ops, "--time", each.String(), "--plan=", "--json")
	if of.local {
		words = append(words, "--topo", fmt.Sprintf("1x%d", s.perNode))
	} else {
		words = append(s.tierflowRun(), words...)
	}
	if of.table {
		words = append(words, "--table", s.tableFile())
	}
	if of.alloc {
		words = append(words, "--alloc")
	}
	if s.single {
		words = append(words, "--single")
	}
	switch {
	case s.counts != "":
		words = append(words, "--counts", s.counts)
	case ops != tasks.Barrier.String(): // it has no bytes, and would take the flag as a mistake
		words = append(words, "--bytes", bytes)
	}
	if s.nodes > 1 {
		words = append(words, "--wire")
	}
	return words
}

// tierflowRun returns the command line of tierflow's launcher.
func (s site) tierflowRun() []string {
	words := []string{s.tierflow, "run", "--no-prefix", "--oversubscribe", "--bind", s.bind}
	if s.nodes > 1 {
		words = append(words, "--hosts", s.hosts(), "--launcher", s.rsh)
	} else {
		words = append(words, "-n", strconv.Itoa(s.perNode))
	}
	return append(words, "--")
}

// mpirun returns the command line of Open MPI's launcher.
func (s site) mpirun(mca []string) []string {
	words := []string{
		"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", s.bind,
		"-n", strconv.Itoa(s.ranks()), "--mca", "pml", "ob1",
	}
	if s.nodes > 1 {
		words = append(words, "--host", s.hosts(), "--map-by", "slot",
			"--mca", "plm_rsh_agent", s.rsh, "--mca", "oob_tcp_if_include", "eth0",
			"--mca", "btl", "tcp,self,vader", "--mca", "btl_tcp_if_include", "eth0")
	} else {
		words = append(words, "--mca", "btl", "self,vader")
	}
	for pair := range slices.Chunk(mca, 2) {
		words = append(words, "--mca", pair[0], pair[1])
	}
	return words
}

// hydra returns the command line of MPICH's launcher. UCX would take the nodes of an
// emulated cluster for one machine and pass by the network, unless each has an IPC
// namespace of its own.
func (s site) hydra(genv []string) []string {
	words := []string{"mpiexec.mpich", "-launcher", "fork", "-bind-to", s.bind, "-n", strconv.Itoa(s.perNode)}
	if s.nodes > 1 {
		words = []string{
			"unshare", "--ipc", "mpiexec.mpich", "-launcher", "rsh", "-launcher-exec", s.folder + "/rsh-ipc", "-iface", "eth0",
			"-hosts", s.hosts(), "-n", strconv.Itoa(s.ranks()), "-ppn", strconv.Itoa(s.perNode),
			"-genv", "UCX_TLS", "tcp,self,sm", "-genv", "UCX_NET_DEVICES", "eth0,memory",
		}
	}
	for pair := range slices.Chunk(genv, 2) {
		words = append(words, "-genv", pair[0], pair[1])
	}
	return words
}

// yielding has Open MPI's parameters for waiting ranks: they yield the processor, or
// spin.
var yielding = map[bool][]string{true: {"mpi_yield_when_idle", "1"}, false: {"mpi_yield_when_idle", "0"}}

func yieldName(yields bool) string {
	if yields {
		return "yield"
	}
	return "spin"
}

// asItIsOf is the setting of a library without parameters. Its rules are measured against it.
func asItIsOf(library string) setting {
	if library == openMPI {
		return openMPITuned(true)
	}
	return setting{library: library, variant: "default"}
}

// openMPITuned is Open MPI by its coll/tuned as it is. Waiting ranks yield the processor or spin.
func openMPITuned(yields bool) setting {
	return setting{library: openMPI, variant: "tuned, " + yieldName(yields), mca: yielding[yields]}
}

// openMPIHAN is Open MPI by its coll/han as it is.
func openMPIHAN(yields bool) setting {
	return setting{library: openMPI, variant: "han, " + yieldName(yields), mca: append([]string{"coll_han_priority", "100"}, yielding[yields]...)}
}

// allocLeast is the least size in bytes for which the place of buffers matters: shorter
// messages carry their bytes along.
const allocLeast = 4 << 10

// defaultSettings returns the settings of libraries as they are, ourselves first. The
// cells decide which of our own are beside.
func (s site) defaultSettings(found []string, c cells) []setting {
	all := []setting{byRule}
	if s.measured {
		all = append(all, byMachine)
	}
	if s.nodes == 1 {
		of := cells{
			slices.DeleteFunc(slices.Clone(c.ops), func(op string) bool { return op == tasks.Barrier.String() }),
			slices.DeleteFunc(slices.Clone(c.bytes), func(n int64) bool { return n < allocLeast }),
		}
		if len(of.ops)*len(of.bytes) > 0 {
			all = append(all, setting{library: ourselves, variant: withAlloc, alloc: true, only: &of})
		}
		all = append(all, setting{library: ourselves, variant: asGoroutine, local: true})
	}
	for _, library := range found {
		switch library {
		case openMPI:
			all = append(all, s.openMPIDefaults()...)
		case mpich:
			all = append(append(all, asItIsOf(mpich)), s.mpichForced(c)...)
		case gloo:
			all = append(all, s.glooDefault(c)...)
		}
	}
	return all
}

// openMPIDefaults returns Open MPI as it is, by tuned and by HAN, each with yielding and with spinning ranks.
func (s site) openMPIDefaults() (all []setting) {
	for _, yields := range []bool{true, false} {
		if !yields && !s.spin {
			continue
		}
		all = append(all, openMPITuned(yields))
		if s.isHierarchical() {
			all = append(all, openMPIHAN(yields))
		}
	}
	return all
}

// mpichAlgorithms are those forced by MPICH's variables, by collective; those of an alltoall of
// different blocks are under alltoallv.
var mpichAlgorithms = map[string][]string{
	"scan":      {"smp", "recursive_doubling"},
	"alltoall":  {"brucks", "pairwise", "scattered"},
	"alltoallv": {"scattered"},
}

// mpichForced returns MPICH's algorithms for the collectives among the cells with
// several, each as a setting. An exscan has recursive doubling only.
func (s site) mpichForced(c cells) (all []setting) {
	for _, op := range c.ops {
		name := op
		if op == tasks.Alltoall.String() && s.counts != "" {
			name = "alltoallv"
		}
		for _, algorithm := range mpichAlgorithms[name] {
			forced := forceMPICH(name, algorithm)
			forced.only = &cells{[]string{op}, c.bytes}
			all = append(all, forced)
		}
	}
	return all
}

// forceMPICH returns the setting with an algorithm of a collective forced by MPICH's variable.
func forceMPICH(coll, algorithm string) setting {
	return setting{
		library: mpich, variant: "forced: " + algorithm,
		genv: []string{"MPIR_CVAR_" + strings.ToUpper(coll) + "_INTRA_ALGORITHM", algorithm},
	}
}

// glooOps are the collectives of Gloo's driver. It knows equal blocks only.
var glooOps = kit.Names([]tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.Barrier})

// glooDefault is the setting of Gloo for the cells within its driver's reach, if there are any.
func (s site) glooDefault(c cells) []setting {
	of := cells{slices.DeleteFunc(slices.Clone(c.ops), func(op string) bool { return !slices.Contains(glooOps, op) }), c.bytes}
	switch {
	case s.counts != "" || len(of.ops) == 0:
		return nil
	case len(of.ops) == len(c.ops):
		return []setting{{library: gloo, variant: "default"}}
	}
	return []setting{{library: gloo, variant: "default", only: &of}}
}

// isHierarchical reports whether HAN has something to do. Elsewhere it hands over to
// tuned.
func (s site) isHierarchical() bool { return s.nodes > 1 && s.perNode > 1 && !s.rules }

// tableFile returns the path of the tuned setting's decision table.
func (s site) tableFile() string { return s.folder + "/table.json" }
