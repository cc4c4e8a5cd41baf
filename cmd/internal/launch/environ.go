package launch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels/join/launcher"
)

// remotePrefixes begin the names of variables of tierflow and of OpenMP. They go to other hosts
// unasked.
var remotePrefixes = []string{envPrefix, "OMP_"}

// remoteNames go to other hosts unasked, as they say how Go programs run.
var remoteNames = []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK"}

// isRemote reports whether a variable goes to other hosts unasked. The addresses of this one don't.
func isRemote(key string) bool {
	return key != envAdvertise &&
		(slices.Contains(remoteNames, key) || slices.ContainsFunc(remotePrefixes, func(p string) bool { return strings.HasPrefix(key, p) }))
}

// passedEnv returns the variables of all ranks: those of the launcher's environment, then the
// exported ones. The last one of a name counts.
func (o *Options) passedEnv() []string {
	env := passedEnv(o.Env, o.isLocal())
	for _, x := range o.Export {
		if name, _, set := strings.Cut(x, "="); set {
			env = append(env, x)
		} else {
			env = append(env, name+"="+o.getenv(name))
		}
	}
	return env
}

// passedEnv returns the part of the launcher's environment for the ranks. A launcher that is
// itself a rank must not hand on its own place, nor the name of its own launcher.
func passedEnv(env []string, local bool) []string {
	var passed []string
	for _, kv := range env {
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
	env := append(slices.Clip(base),
		envRank+"="+strconv.Itoa(s.Ranks[i]),
		envSize+"="+strconv.Itoa(s.Size),
		envLocalRank+"="+strconv.Itoa(i),
		envLocalSize+"="+strconv.Itoa(len(s.Ranks)),
		envRendezvous+"="+rendezvous,
		envSecret+"="+s.Secret)
	blameFD := firstFD
	if !r.First {
		env = append(env, launcher.RestartsVariable+"="+strconv.Itoa(r.Restarts))
	} else if s.Ranks[i] == 0 {
		env = append(env, envRendezvousFD+"="+strconv.Itoa(firstFD))
		blameFD++
	}
	env = append(env, envBlameFD+"="+strconv.Itoa(blameFD))
	if s.Node != "" {
		env = append(env, envNode+"="+s.Node)
	}
	return env
}
