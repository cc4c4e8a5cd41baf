package foreign

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

func init() {
	for _, library := range []string{OpenMPI, MPICH} {
		rules.RegisterWords(library, func(coll, value string) (string, error) { return forcedPlan(library, coll, value) })
	}
}

// forcedPlan returns the plan for the value of a library's word: an algorithm's number or name, and for Open
// MPI a segment size, bytes, and a fan-out, 0 being its own. ompi=0 forces nothing.
func forcedPlan(library, coll, value string) (string, error) {
	c, err := tasks.ParseCollective(coll)
	if err != nil {
		return "", err
	}
	name := c.String()
	if c == tasks.ReduceScatter {
		name = "reduce_scatter_block" // of equal blocks
	}
	words := strings.Split(value, "/")
	if words[0] == "0" && library == OpenMPI {
		return "", nil
	}
	r, err := Find(library, name, words[0])
	if err != nil {
		return "", err
	}
	if r.Plan == "" {
		return "", fmt.Errorf("%s %s has no counterpart: %s", name, r.Name, r.Why)
	}
	var s settings
	if len(words) > 3 || len(words) > 1 && library != OpenMPI {
		return "", fmt.Errorf("%s=%s: write ompi=NUMBER[/SEGMENT[/FAN]] or mpich=NAME", library, value)
	}
	if len(words) > 1 {
		if s.Segment, err = tasks.ParseBytes(words[1]); err != nil {
			return "", err
		}
	}
	if len(words) > 2 {
		if s.Fan, err = strconv.Atoi(words[2]); err != nil || s.Fan < 0 || s.Fan > tasks.MaxNumber {
			return "", fmt.Errorf("fan-out %q; allowed are 0 to %d", words[2], tasks.MaxNumber)
		}
	}
	text, unused := fill(r.Plan, s)
	if len(unused) > 0 {
		return "", fmt.Errorf("%s %s takes no %s here", name, r.Name, strings.Join(unused, ", "))
	}
	return text, nil
}
