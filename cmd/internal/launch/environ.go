package launch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels/join/env"
)

// remotePrefixes begin the names of variables of tierflow and of OpenMP. They go to other hosts
// unasked.
var remotePrefixes = []string{env.Prefix, "OMP_"}

// remoteNames go to other hosts unasked, as they say how Go programs run.
var remoteNames = []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK"}

// isRemote reports whether a variable goes to other hosts unasked. The addresses of this one don't.
func isRemote(key string) bool {
	return key != env.Advertise &&
		(slices.Contains(remoteNames, key) || slices.ContainsFunc(remotePrefixes, func(p string) bool { return strings.HasPrefix(key, p) }))
}

// passedEnv returns the variables of all ranks: those of the launcher's environment, then the
// exported ones. The last one of a name counts.
func (o *Options) passedEnv() []string {
	vars := passedEnv(o.Env, o.isLocal())
	for _, x := range o.Export {
		if name, _, set := strings.Cut(x, "="); set {
			vars = append(vars, x)
		} else {
			vars = append(vars, name+"="+o.getenv(name))
		}
	}
	return vars
}

// passedEnv returns the part of the launcher's environment for the ranks. A launcher that is
// itself a rank must not hand on its own place, nor the name of its own launcher.
func passedEnv(vars []string, local bool) []string {
	var passed []string
	for _, kv := range vars {
		key, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(jobKeys, key) && (local || isRemote(key)) {
			passed = append(passed, kv)
		}
	}
	return passed
}

// rankEnv returns the environment of the i-th rank of s on top of base. r says whether it is started
// again.
func rankEnv(base []string, s *start, i int, rendezvous string, r restartOrder) []string {
	vars := append(slices.Clip(base),
		env.Rank+"="+strconv.Itoa(s.Ranks[i]),
		env.Size+"="+strconv.Itoa(s.Size),
		env.LocalRank+"="+strconv.Itoa(i),
		env.LocalSize+"="+strconv.Itoa(len(s.Ranks)),
		env.Rendezvous+"="+rendezvous,
		env.Secret+"="+s.Secret)
	blameFD := firstFD
	if !r.First {
		vars = append(vars, env.Restarts+"="+strconv.Itoa(r.Restarts))
	} else if s.Ranks[i] == 0 {
		vars = append(vars, env.RendezvousFD+"="+strconv.Itoa(firstFD))
		blameFD++
	}
	vars = append(vars, env.BlameFD+"="+strconv.Itoa(blameFD))
	if s.Node != "" {
		vars = append(vars, env.Node+"="+s.Node)
	}
	return vars
}
