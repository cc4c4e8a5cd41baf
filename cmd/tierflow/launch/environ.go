package launch

import (
	"slices"
	"strconv"
	"strings"
)

// The names by which a rank learns its place; the package comment says what each holds.
const (
	envPrefix       = "TIERFLOW_"
	envRank         = envPrefix + "RANK"
	envSize         = envPrefix + "SIZE"
	envLocalRank    = envPrefix + "LOCAL_RANK"
	envLocalSize    = envPrefix + "LOCAL_SIZE"
	envRendezvous   = envPrefix + "RENDEZVOUS"
	envRendezvousFD = envPrefix + "RENDEZVOUS_FD"
	envSecret       = envPrefix + "SECRET"
	envNode         = envPrefix + "NODE"
	envLauncher     = envPrefix + "LAUNCHER"
	envBind         = envPrefix + "BIND" // read by launcher and agent, for a rank's own ranks

	rendezvousFD = 3 // the first of exec.Cmd's ExtraFiles
)

var jobKeys = []string{envRank, envSize, envLocalRank, envLocalSize, envRendezvous, envRendezvousFD, envSecret, envNode, envLauncher}

// passedEnv returns the part of the launcher's environment that goes to the ranks. A
// launcher that is itself a rank must not hand on its own place, nor who started it.
func passedEnv(env []string, local bool) []string {
	var passed []string
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(jobKeys, key) && (local || strings.HasPrefix(key, envPrefix)) {
			passed = append(passed, kv)
		}
	}
	return passed
}

// rankEnv returns the environment of the i-th rank of s on top of base.
func rankEnv(base []string, s *start, i int, rendezvous string) []string {
	env := append(slices.Clip(base),
		envRank+"="+strconv.Itoa(s.Ranks[i]),
		envSize+"="+strconv.Itoa(s.Size),
		envLocalRank+"="+strconv.Itoa(i),
		envLocalSize+"="+strconv.Itoa(len(s.Ranks)),
		envRendezvous+"="+rendezvous,
		envSecret+"="+s.Secret)
	if s.Ranks[i] == 0 {
		env = append(env, envRendezvousFD+"="+strconv.Itoa(rendezvousFD))
	}
	if s.Node != "" {
		env = append(env, envNode+"="+s.Node)
	}
	return env
}
