package foreign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// Expand replaces words such as ompi=6/65536 and mpich=binomial in a text of forced plans by
// equal plans: an algorithm's number or name, and for Open MPI a segment size,
// bytes, and a fan-out, 0 being its own. ompi=0 forces nothing. The collective must be named:
// bcast:ompi=6/65536.
func Expand(text string) (string, error) {
	if !strings.Contains(text, OpenMPI+"=") && !strings.Contains(text, MPICH+"=") {
		return text, nil
	}
	parts := strings.Split(text, ";")
	for i, part := range parts {
		name, words, has := strings.Cut(part, ":")
		if !has {
			words = part
		}
		list := strings.Split(words, ",")
		changed := false
		for k, word := range list {
			key, value, _ := strings.Cut(strings.TrimSpace(word), "=")
			if key != OpenMPI && key != MPICH {
				continue
			}
			if !has {
				return "", fmt.Errorf("plan %q: %s= numbers algorithms of a collective; write bcast:%s", part, key, strings.TrimSpace(word))
			}
			plan, err := forcedPlan(key, strings.TrimSpace(name), value)
			if err != nil {
				return "", fmt.Errorf("plan %q: %w", part, err)
			}
			list[k], changed = plan, true
		}
		if changed {
			parts[i] = name + ":" + strings.Join(slices.DeleteFunc(list, func(w string) bool { return w == "" }), ",")
		}
	}
	return strings.Join(parts, ";"), nil
}

// forcedPlan returns the plan for number/segment/fan of a library.
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
