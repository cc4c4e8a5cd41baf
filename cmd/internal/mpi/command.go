// Package mpi is the command tierflow mpi. It builds the shim, a library to give an MPI program
// tierflow's collectives, and starts programs under it. It never speaks to an MPI itself.
package mpi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/libtierflow/abi"
	"github.com/tierflow/tierflow/levels/join/env"
)

// shimName is the file written by build and loaded by run.
const shimName = "libtierflow-mpi.so"

// forDebugger ends the name of the file for gdb that build writes beside the shim: gdb looks for such names.
const forDebugger = "-gdb.py"

// missing is the exit status if there is no launcher, as shells and tierflow run have it.
const missing = 127

// Command returns mpi.
func Command() *cobra.Command {
	c := kit.Group("mpi", "Run the collectives of MPI programs", buildCommand(), runCommand())
	c.Long = fmt.Sprintf(`Unmodified programs of Open MPI and MPICH get tierflow's collectives: a shim, loaded by
LD_PRELOAD, stands between the program and its MPI. It takes Barrier, Bcast, Reduce,
Allreduce, Reduce_scatter, Scan, Exscan, Gather, Scatter, Allgather and Alltoall, of
blocks that differ too, blocking, nonblocking and persistent, in host memory. All
other calls are passed on to MPI, and so is what tierflow can't do: user operations,
MINLOC and MAXLOC, long double, intercommunicators.

The shim needs libtierflow.so, beside it or where %s says:

  go build -buildmode=c-shared -o libtierflow.so ./cmd/libtierflow

If a rank has no shim, being linked statically or without LD_PRELOAD, or that of another
MPI, or the library is missing there, or it can't join, one line says so and MPI does
everything itself. At the end "tierflow mpi run" says if no rank had the shim.

%s of rank 0 limits it: off, or a list such as allreduce:4KiB,bcast:0-1MiB, by
the bytes of a buffer or of a rank's block in it. A request's first call on a communicator
is MPI's and the second is compiled; %s=1 compiles the first as well. With
%s=1 rank 0 prints at the end how many of its calls were whose, and why they
were passed on; with "explain" also, of each request, the plan, who chose it and why.
%s=summary prints the time by collective and size.`, env.Lib, env.MPI, env.MPIAfter, env.MPIVerbose, env.Profile)
	return c
}

func buildCommand() *cobra.Command {
	var mpicc, output string
	c := &cobra.Command{
		Use: "build", Short: "Build the shim with an MPI's compiler", Args: kit.NoOperands,
		Long: fmt.Sprintf(`Builds the shim for one MPI: handles differ, so each MPI needs its own. The source is part
of this command. It needs a C compiler and the MPI's headers. Beside it go a file for gdb, its
name with %s behind, by which ranks in tierflow show the program's frames, and one with
%s behind, which valgrind's --suppressions takes.`, forDebugger, forValgrind),
		Example: `  tierflow mpi build --mpicc mpicc.openmpi -o openmpi/libtierflow-mpi.so`,
		RunE:    func(c *cobra.Command, _ []string) error { return build(c.Context(), mpicc, output) },
	}
	c.Flags().StringVar(&mpicc, "mpicc", "mpicc", "the MPI's compiler")
	c.Flags().StringVarP(&output, "output", "o", shimName, "file to write")
	return c
}

// build compiles the shim.
func build(ctx context.Context, mpicc, output string) error {
	cc, err := exec.LookPath(mpicc)
	if err != nil {
		return fmt.Errorf("%w: install the headers of your MPI (libopenmpi-dev, libmpich-dev), or give --mpicc", err)
	}
	dir, err := os.MkdirTemp("", "tierflow-mpi")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "libtierflow-mpi.c")
	for name, text := range map[string]string{source: abi.Shim, filepath.Join(dir, "tierflow.h"): abi.Header} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	out, err := exec.CommandContext(ctx, cc, "-O2", "-fPIC", "-fvisibility=hidden", "-shared", "-o", output, source, "-ldl").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", mpicc, err, out)
	}
	return errors.Join(
		os.WriteFile(output+forDebugger, []byte(abi.Debugger), 0o644),
		os.WriteFile(output+forValgrind, []byte(suppressions()), 0o644),
	)
}

func runCommand() *cobra.Command {
	var shim string
	c := &cobra.Command{
		Use: "run [--shim FILE] [--] LAUNCHER [ARGS]", Short: "Start an MPI program under the shim",
		Long: `Runs LAUNCHER, which is mpirun, mpiexec or srun with its arguments, such that the ranks load
the shim: with -x of Open MPI, for each program, or -genv of Hydra, else through the environment.
They are managed, as ranks of tierflow run: tierflow ps shows them.
What LAUNCHER's arguments preload (-x LD_PRELOAD=…, -genv LD_PRELOAD …) stays in front of it. Files
of programs (--app, -configfile) are refused: the shim would be missing there. The exit status is
the launcher's, or 127 if it is missing.`,
		Example:               `  tierflow mpi run --shim openmpi/libtierflow-mpi.so -- mpirun -n 4 ./prog`,
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return kit.Usagef("no launcher: give it after all flags, as in tierflow mpi run -- mpirun -n 4 ./prog")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return launch(c.Context(), shim, args, c.InOrStdin(), kit.Raw(c.OutOrStdout()), c.ErrOrStderr())
		},
	}
	c.Flags().SetInterspersed(false)
	c.Flags().StringVar(&shim, "shim", shimName, "what tierflow mpi build has written")
	return c
}

// launch runs a launcher and waits for it.
func launch(ctx context.Context, shim string, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	shim, err := filepath.Abs(shim)
	if err == nil {
		_, err = os.Stat(shim)
	}
	if err != nil {
		return fmt.Errorf("%w: tierflow mpi build makes it, --shim says where it is", err)
	}
	version, _ := exec.CommandContext(ctx, args[0], "--version").Output() // unknown: by the environment
	marks, err := os.MkdirTemp("", "tierflow-mpi")
	if err != nil {
		return err
	}
	defer os.RemoveAll(marks)
	environ := append(kit.ManagedEnviron(), env.MPIMarks+"="+marks)
	line, extra, err := withShim(string(version), shim, args, environ)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, line[0], line[1:]...)
	c.Env = append(environ, extra...)
	c.Stdin, c.Stdout, c.Stderr = stdin, stdout, stderr
	err = c.Run()
	if err == nil && !hasMarks(marks) {
		fmt.Fprintln(stderr, noMarks)
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() > 0 {
		return kit.WithStatus(err, failed.ExitCode())
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return kit.WithStatus(err, missing)
	}
	return err
}

// noMarks is said at the end of a job in which no rank had the shim.
const noMarks = "tierflow mpi run: no rank on this machine has come to MPI_Init with the shim, so MPI did all: the program isn't of MPI, " +
	"is linked statically, or something between the launcher and it drops LD_PRELOAD"

// hasMarks reports whether a rank with the shim has left its mark in a folder.
func hasMarks(folder string) bool {
	ranks, err := filepath.Glob(filepath.Join(folder, "r*"))
	return err == nil && len(ranks) > 0
}
