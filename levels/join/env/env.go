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
	Own      Whose = iota // each rank's own
	Root                  // rank 0's, for all ranks
	Same                  // all ranks have the same: joining fails otherwise, or the job's files don't fit together
	Launcher              // tierflow run reads it, or sets it for its ranks
)

// variables are those of programs and commands, from users or from tierflow run.
var variables = []struct {
	name  string
	whose Whose
}{
	{"TIERFLOW_ADVERTISE", Own},
	{"TIERFLOW_BIND", Launcher},
	{"TIERFLOW_BLAME_FD", Launcher},
	{"TIERFLOW_CALL_TIMEOUT", Own},
	{"TIERFLOW_CHECK_NAN", Own},
	{"TIERFLOW_CONGESTION", Own},
	{"TIERFLOW_DOOR", Own},
	{"TIERFLOW_DUMP", Own},
	{"TIERFLOW_DUMP_DIR", Own},
	{"TIERFLOW_EFFORT", Root},
	{"TIERFLOW_INTERFACES", Own},
	{"TIERFLOW_JOIN_TIMEOUT", Own},
	{"TIERFLOW_LAUNCHER", Own},
	{"TIERFLOW_LIB", Own},
	{"TIERFLOW_LINKS", Root},
	{"TIERFLOW_LOBBY_FD", Launcher},
	{"TIERFLOW_LOCAL_RANK", Launcher},
	{"TIERFLOW_LOCAL_SIZE", Launcher},
	{"TIERFLOW_MACHINE", Root},
	{"TIERFLOW_MANAGED", Root},
	{"TIERFLOW_METRICS", Launcher},
	{"TIERFLOW_MPI", Root},
	{"TIERFLOW_MPI_AFTER", Root},
	{"TIERFLOW_MPI_VERBOSE", Root},
	{"TIERFLOW_NODE", Own},
	{"TIERFLOW_NUMA", Own},
	{"TIERFLOW_PLAN", Root},
	{"TIERFLOW_PORT", Own},
	{"TIERFLOW_PORTS", Own},
	{"TIERFLOW_PROFILE", Root},
	{"TIERFLOW_RANK", Own},
	{"TIERFLOW_RECORDER", Own},
	{"TIERFLOW_RENDEZVOUS", Same},
	{"TIERFLOW_RENDEZVOUS_FD", Launcher},
	{"TIERFLOW_RESTARTS", Launcher},
	{"TIERFLOW_RULES", Root},
	{"TIERFLOW_SECRET", Same},
	{"TIERFLOW_SITE", Own},
	{"TIERFLOW_SIZE", Same},
	{"TIERFLOW_STATE_FD", Launcher},
	{"TIERFLOW_TABLE", Root},
	{"TIERFLOW_TLS", Same},
	{"TIERFLOW_TRACE", Same},
	{"TIERFLOW_TUNE", Launcher},
}

// WhoseIs says whose value of a known variable counts; known is false for any other name.
func WhoseIs(name string) (w Whose, known bool) {
	for _, v := range variables {
		if v.name == name {
			return v.whose, true
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

// Names returns the names of all variables, sorted, without those of tests.
func Names() (all []string) {
	for _, v := range variables {
		all = append(all, v.name)
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
