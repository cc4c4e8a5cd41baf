package mpi

import (
	"slices"
	"strings"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels/join/env"
)

// withShim returns a launcher's command line for ranks to load the shim, and additions to its
// environment. version is the launcher's answer to --version. Tools that are preloaded already, by the environment or by
// arguments of the launcher, stay in front: they see the program's calls first.
func withShim(version, shim string, args, environ []string) (line, extra []string, err error) {
	if strings.ContainsAny(shim, " :") {
		return nil, nil, kit.Usagef("shim %q: LD_PRELOAD separates names by blanks and colons: use a path without them", shim)
	}
	value := shim
	for _, v := range environ {
		if tool, found := strings.CutPrefix(v, preload+"="); found {
			value = behind(tool, shim)
		}
	}
	switch {
	case strings.Contains(version, "Open MPI") || strings.Contains(version, "OpenRTE"):
		line, err = underOpenMPI(shim, value, args, environ)
	case strings.Contains(version, "HYDRA"):
		line, err = underHydra(shim, value, args)
	default:
		return args, []string{preload + "=" + value}, nil
	}
	return line, nil, err
}

const preload = "LD_PRELOAD"

// behind puts the shim behind the tools that a value of LD_PRELOAD names.
func behind(tools, shim string) string { return strings.TrimPrefix(tools+":"+shim, ":") }

// underOpenMPI gives -x to each of the programs, which colons separate: it counts for one of them.
func underOpenMPI(shim, value string, args, environ []string) (line []string, err error) {
	var variables []string
	for _, v := range environ {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, env.Prefix) {
			variables = append(variables, "-x", name)
		}
	}
	line = args[:1:1]
	for rest, more := args[1:], true; more; {
		program := rest
		if i := slices.Index(rest, ":"); i >= 0 {
			program, rest = rest[:i], rest[i+1:]
		} else {
			more = false
		}
		program = slices.Clone(program)
		own := false
		for i, word := range program {
			if word == "--app" || word == "-app" {
				return nil, kit.Usagef("%s %s: -x counts for programs of the command line alone: give them there, or write -x %s=%s into each line and start mpirun yourself",
					word, strings.Join(program[i+1:min(i+2, len(program))], ""), preload, shim)
			}
			if tool, is := strings.CutPrefix(word, preload+"="); is && i > 0 && program[i-1] == "-x" {
				program[i], own = preload+"="+behind(tool, shim), true
			}
		}
		if !own {
			line = append(line, "-x", preload+"="+value)
		}
		line = slices.Concat(line, variables, program)
		if more {
			line = append(line, ":")
		}
	}
	return line, nil
}

// underHydra gives -genv, which counts for all programs. It exports other variables by itself.
func underHydra(shim, value string, args []string) ([]string, error) {
	program, global := slices.Clone(args), []string{"-genv", preload, value}
	for i, word := range args {
		switch word {
		case "-configfile", "--configfile":
			return nil, kit.Usagef("%s: what is preloaded in it isn't known here: give the programs on the command line", word)
		case "-genv", "-env":
			if i+2 >= len(args) || args[i+1] != preload {
				continue
			}
			program[i+2] = behind(args[i+2], shim)
			if word == "-genv" {
				global = nil
			}
		}
	}
	return slices.Concat(program[:1], global, program[1:]), nil
}
