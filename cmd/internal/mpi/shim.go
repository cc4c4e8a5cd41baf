package mpi

import (
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels/join/env"
)

// The variables read by the shim alone.
const (
	libVariable     = "TIERFLOW_LIB"
	limitsVariable  = "TIERFLOW_MPI"
	afterVariable   = "TIERFLOW_MPI_AFTER"
	verboseVariable = "TIERFLOW_MPI_VERBOSE"
)

// withShim returns a launcher's command line for ranks to load the shim, and additions to its
// environment. version is the launcher's answer to --version.
func withShim(version, shim string, args, environ []string) (line, extra []string) {
	preload := "LD_PRELOAD=" + shim // last: other tools see the program's calls first
	for _, v := range environ {
		if old, found := strings.CutPrefix(v, "LD_PRELOAD="); found && old != "" {
			preload = v + ":" + shim
		}
	}
	var add []string
	switch {
	case strings.Contains(version, "Open MPI") || strings.Contains(version, "OpenRTE"):
		add = []string{"-x", preload}
		for _, v := range environ {
			if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, env.Prefix) {
				add = append(add, "-x", name)
			}
		}
	case strings.Contains(version, "HYDRA"): // it exports all variables
		name, value, _ := strings.Cut(preload, "=")
		add = []string{"-genv", name, value}
	default:
		return args, []string{preload}
	}
	return slices.Concat(args[:1], add, args[1:]), nil
}
